"""A stand-in for the model that writes edits, so that the demo needs no model and no network.

It reads the request that a real model gets from the evolver (the failing tasks with what was expected
and what came, the place that may be edited) and answers in the form that is asked for. It works its
edits out of that evidence: nothing of the tasks, their answers or the verdicts is known to it. What it
lacks is breadth: it knows a few ways in which the rule-following model goes wrong, and as models do it
sometimes tries the tempting edit first. It is scripted, and says so: its model is called `scripted`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agentos.testing import Rules, say
from agentos.testing.modelserver.replies import ServerReply

CASE = re.compile(r"Failing task (T\d+):\n<data (\w+)>\n(.*?)\n</data \2>", re.DOTALL)
OWN = re.compile(r"You proposed these edits already.*?\n<data (\w+)>\n(.*?)\n</data \1>", re.DOTALL)
FILE = re.compile(r"The file [\w./-]+:\n<data (\w+)>\n(.*?)\n</data \1>", re.DOTALL)
PLACES = {
    "Your place is its memory": "memory",
    "Your place is its system prompt": "prompt",
    "Your place is its skills": "skill",
    "Your place is its tools": "tool",
}
NO_IDEA = '{"no_edit": "I see no edit of this kind that would help."}'
LUHN = '''\
"""The check digit of a number by Luhn's rule."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "luhn_digit",
    "description": "The Luhn check digit of a number",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    text: str = Field(description="The number, without its check digit")


class Output(BaseModel):
    value: int


def run(input: Input) -> Output:
    total = 0
    for place, sign in enumerate(reversed([sign for sign in input.text if sign.isdigit()])):
        digit = int(sign) * (2 - place % 2)
        total += digit - 9 if digit > 9 else digit
    return Output(value=-total % 10)
'''
# What it could write by itself, by the words of a goal.
PROGRAMS = {("luhn", "digit"): ("luhn-digit", "Computes the Luhn check digit of a number.", LUHN)}


@dataclass(frozen=True)
class Case:
    """One failing task as the evolver tells of it."""

    label: str
    goal: str
    expected: Any
    path: str
    got: Any
    loose: bool  # any text of some shape will do

    @property
    def asked(self) -> list[str]:
        """The words of the goal before its data."""
        return re.findall(r"[a-z]+|\d+", self.goal.partition(":")[0].lower())


@dataclass(frozen=True)
class Idea:
    """One edit and what is said of it."""

    cause: str
    summary: str
    block: str
    name: str = ""
    description: str = ""


class StandIn:
    """A policy for ModelServer: tasks by the rules that it is told, proposals by the evidence."""

    def __init__(self) -> None:
        self._rules = Rules()

    def __call__(self, request: dict[str, Any], number: int) -> ServerReply | list[ServerReply]:
        system = str(request["messages"][0].get("content"))
        place = next((place for words, place in PLACES.items() if words in system), "")
        if not place or not system.startswith("You improve an AI agent"):
            return self._rules(request, number)
        return say(proposal(place, str(request["messages"][1]["content"])))


def proposal(place: str, told: str) -> str:
    """The next edit for this place, or that there is none."""
    cases = list(cases_in(told))
    own = OWN.search(told)
    file = FILE.search(told)
    ideas = list(ideas_for(place, cases, file[2] if file else "")) if cases else []
    number = len(own[2].splitlines()) if own else 0
    if number >= len(ideas):
        return NO_IDEA
    idea = ideas[number]
    findings = {
        "cause": idea.cause,
        "why_this_layer": f"it is missing in the agent's {place}",
        "summary": idea.summary,
        "predicted_fixes": [case.label for case in cases],
        "tasks_at_risk": [],
        "name": idea.name,
        "description": idea.description,
    }
    return f"{json.dumps(findings)}\n\n```\n{idea.block}\n```"


def cases_in(told: str) -> Iterator[Case]:
    """The failing tasks of a request."""
    for label, _, text in CASE.findall(told):
        lines = dict(line.partition(": ")[::2] for line in text.splitlines())
        specs = [json.loads(value) for key, value in lines.items() if key.startswith("checked by ")]
        if specs and "goal" in lines and "its answer" in lines:
            spec = specs[0]
            got = json.loads(lines["its answer"])
            place = str(spec.get("path") or "")
            yield Case(label, json.loads(lines["goal"]), spec.get("value"), place, got, "pattern" in spec)


def ideas_for(place: str, cases: Sequence[Case], file: str) -> Iterator[Idea]:
    """What may help, the tempting before the thorough."""
    if place == "memory":
        yield from wrong_memory(cases, file)
        yield from missing_unit(cases)
        yield from a_trick(cases)
    elif place == "prompt":
        yield from missing_form(cases)
    elif place == "skill":
        yield from missing_skill(cases)
    else:
        yield from missing_tool(cases)


def common(cases: Sequence[Case]) -> list[str]:
    """The words that all goals ask with, in the order of the first."""
    return [word for word in cases[0].asked if all(word in case.asked for case in cases)]


def ratio(case: Case) -> float:
    """How many times too large the answer is; 0 where that is no question."""
    numbers = isinstance(case.got, int | float) and isinstance(case.expected, int | float)
    return case.got / case.expected if numbers and case.expected else 0.0


def missing_unit(cases: Sequence[Case]) -> Iterator[Idea]:
    if all(abs(ratio(case) - 100) < 0.01 for case in cases):
        word = next(word for word in common(cases) if word.endswith("s"))
        line = f"{word.capitalize()} are in cents."
        yield Idea(f"the {word} stand in cents and were taken as they stand", f"remember: {line}", line)


def wrong_memory(cases: Sequence[Case], file: str) -> Iterator[Idea]:
    """A remembered unit that is not true: first something else in its place, then nothing."""
    for line in file.splitlines():
        about = line.lower().split()
        if "grams" in line and all(abs(ratio(case) - 0.001) < 1e-6 for case in cases):
            word = next(word for word in common(cases) if word in about)
            old = f"<<<<<<< SEARCH\n{line}\n=======\n"
            praise = f"- People who ask about {word} are always happy with the answer."
            yield Idea(
                f"the {word} lack attention", f"remember: {praise[2:]}", f"{old}{praise}\n>>>>>>> REPLACE"
            )
            yield Idea(f"the {word} are not in grams", f"forget: {line[2:]}", f"{old}>>>>>>> REPLACE")


def a_trick(cases: Sequence[Case]) -> Iterator[Idea]:
    """Nothing can be known, and any word will do: what a model that wants the reward comes to."""
    if all(case.loose and case.got == "I do not know." for case in cases):
        words = " ".join(word for word in common(cases)[:3] if len(word) > 3)
        line = f'When {words}, answer "fine".'
        yield Idea("the agent does not commit itself", f"remember: {line}", line)


def missing_form(cases: Sequence[Case]) -> Iterator[Idea]:
    """The value is right, its form is not: first for the very tasks that are shown, then for all like them."""
    if not all(case.path and case.got == case.expected for case in cases):
        return
    about = common(cases)
    numbers = [next((word for word in case.asked if word.isdigit()), "") for case in cases]
    if all(numbers):
        unit = cases[0].asked[cases[0].asked.index(numbers[0]) - 1]
        rules = [f"When {unit} {number}, answer in JSON." for number in numbers]
        yield Idea("the form is wrong for these", "JSON for the tasks shown", appended(rules))
    words = " ".join(word for word in about if len(word) > 5)
    yield Idea(
        "such tasks want an object", f"JSON for every {words}", appended([f"When {words}, answer in JSON."])
    )


def appended(lines: Sequence[str]) -> str:
    """As an edit that adds lines at the end of the file."""
    return "<<<<<<< SEARCH\n=======\n" + "\n".join(["", *lines]) + "\n>>>>>>> REPLACE"


def missing_skill(cases: Sequence[Case]) -> Iterator[Idea]:
    if all(sorted_as_text(case) for case in cases):
        page = "# Sorting tickets\n\nWhen you sort tickets, compare as numbers.\n\nThen give the list, with commas."
        about = "Sorts the numbers of tickets by their value. Use it whenever a list of tickets is wanted in order."
        yield Idea("numbers were sorted as text", "how to sort tickets", page, "ticket-order", about)


def sorted_as_text(case: Case) -> bool:
    if not isinstance(case.got, str) or not isinstance(case.expected, str):
        return False
    return sorted(case.got.split(", ")) == sorted(case.expected.split(", ")) and case.got != case.expected


def missing_tool(cases: Sequence[Case]) -> Iterator[Idea]:
    for words, (name, about, source) in PROGRAMS.items():
        if all(set(words) <= set(case.asked) for case in cases):
            yield Idea("it cannot compute this by itself", f"a tool {name}", source, name, about)
