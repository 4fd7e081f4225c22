"""A small deterministic model that is as good as what it has been told.

It can do four things with a goal: ``total`` (or sum, add) numbers, ``sort`` items, ``count`` words
or lines, and ``say "text"``. Untaught it makes the mistakes that such models make:

- it takes numbers in the unit in which they stand           (a memory: "Amounts are in cents.")
- it answers with the bare result                            (a prompt: "Always answer in JSON.")
- it sorts numbers as text: 10 before 9                      (a skill: "When sorting, compare as numbers.")
- it guesses a count of more than five                       (a tool: ``word_count``)
- it forgets the last of more than four numbers              (a prompt: "Always verify.")

What it can be told is the grammar of ``rules``. A tool is called when a rule names it or when all
words of its name are in the goal; a listed skill ("- name: description") is read when two of its
words are in the goal and there is a tool with "skill" in its name. What follows the first colon of
the goal is data, not wording; so are the files that it names, which it reads with a tool ``read``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TypeAlias

from agentos.domain import Json, digest
from agentos.testing.modelserver.reading import (
    ConversationState,
    fitting_skill,
    fitting_tool,
    items_of,
    numbers_in,
    plain,
    same_tool,
    situation,
)
from agentos.testing.modelserver.replies import ServerReply, call, say
from agentos.testing.modelserver.rules import SCALES

Value: TypeAlias = "Decimal | str"

IGNORANCE = "I do not know."
_DECIMALS = {"one": 1, "two": 2, "three": 3}
_RELIABLE_COUNT = 5
_RELIABLE_TOTAL = 4


class Rules:
    """A policy for ModelServer. ``knows`` are rules that it follows without being told.

    With ``noise`` an answer becomes a wrong one with that probability: always the same for equal
    seed, request (ids of calls aside), how often it was asked before, and choice.
    """

    def __init__(self, *knows: str, noise: float = 0.0, seed: int = 0) -> None:
        if not 0 <= noise <= 1:
            raise ValueError(f"expected a noise from 0 to 1; found {noise}")
        self.knows = knows
        self.noise = noise
        self.seed = seed
        self._asked: Counter[str] = Counter()

    def __call__(self, request: Json, number: int) -> list[ServerReply]:
        """One reply for each choice that the request wants."""
        now = situation(request, self.knows)
        choices = range(request.get("n") or 1)
        if step := next_call(now):
            return [step for _ in choices]
        slips = self._slips(request, len(choices))
        return [say(dressed(slipped(answer(now)) if slip else answer(now), now)) for slip in slips]

    def _slips(self, request: Json, choices: int) -> list[bool]:
        if not self.noise:
            return [False] * choices
        asked = digest([_without_ids(request["messages"]), request.get("tools")])
        occurrence = self._asked[asked]
        self._asked[asked] += 1
        draws = (digest([self.seed, asked, occurrence, choice]) for choice in range(choices))
        return [int(draw[:12], 16) / 16**12 < self.noise for draw in draws]


def load(path: Path) -> Rules:
    """Rules from a TOML file: ``knows`` (sentences), ``noise``, ``seed``. Raises OSError, ValueError."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    if strange := set(found) - {"knows", "noise", "seed"}:
        raise ValueError(f"{path}: expected knows, noise and seed; found {', '.join(sorted(strange))}")
    knows, noise = found.get("knows", []), found.get("noise", 0.0)
    if not isinstance(knows, list) or not all(isinstance(one, str) for one in knows):
        raise ValueError(f"{path}: expected knows as a list of sentences; found {knows!r}")
    if not isinstance(noise, float | int):
        raise ValueError(f"{path}: expected noise as a number; found {noise!r}")
    return Rules(*knows, noise=noise, seed=found.get("seed", 0))


def next_call(now: ConversationState) -> ServerReply | None:
    """The tool calls that come before an answer; none is made twice."""
    if "answer" in now.habits:
        return None
    skill_tool = next((name for name in now.tools if "skill" in name), "")
    skill = now.habits.get("skill") or fitting_skill(now.asked, now.skills)
    if skill and skill_tool and not now.called(skill_tool):
        name = next(iter(now.tools[skill_tool].get("properties") or {}), "name")
        return call(skill_tool, {name: skill})
    tool = chosen_tool(now)
    if now.files and now.reader and not (tool and now.file_argument(tool)) and not now.called(now.reader):
        first, *others = ((now.reader, {now.file_argument(now.reader): file}) for file in now.files)
        return call(*first, *others)
    if tool and not now.called(tool):
        return call(tool, now.arguments(tool))
    return None


def chosen_tool(now: ConversationState) -> str:
    """The tool that a rule names, else the one whose name fits the goal; "" when there is none."""
    named = now.habits.get("tool")
    return (named and same_tool(named, now.tools)) or fitting_tool(now.asked, now.tools)


def answer(now: ConversationState) -> Value:
    """The result that the model comes to."""
    if "answer" in now.habits:
        return now.habits["answer"]
    used = now.called(chosen_tool(now))
    value = number_or_text(plain(used.result)) if used and not used.failed else work(now)
    scale = now.habits.get("scale")
    if scale and isinstance(value, Decimal):
        places = Decimal(1).scaleb(1 - len(str(SCALES[scale])))
        return (value / SCALES[scale]).quantize(places)
    return value


def work(now: ConversationState) -> Value:
    """What it can do without a tool, typical mistakes included."""
    asked, data = now.asked.lower(), now.data
    if quoted := re.search(r'\bsay "(.*)"', now.goal, re.IGNORECASE):
        return quoted[1]
    if re.search(r"\b(total|sum|add)\b", asked):
        return total(data, careful="verify" in now.habits)
    if re.search(r"\bsort\b", asked):
        return ", ".join(in_order(items_of(data), as_numbers="compare" in now.habits))
    if re.search(r"\b(count|how many)\b", asked):
        size = len(data.splitlines() if "line" in asked else data.split())
        return Decimal(size if size <= _RELIABLE_COUNT else size // 5 * 5 + 5)
    return IGNORANCE


def total(data: str, *, careful: bool) -> Decimal:
    """The sum of the numbers; without care the last of a long list is forgotten."""
    numbers = numbers_in(data)
    if not careful and len(numbers) > _RELIABLE_TOTAL:
        numbers.pop()
    return sum((Decimal(one) for one in numbers), Decimal(0))


def in_order(items: list[str], *, as_numbers: bool) -> list[str]:
    """Sorted; items that are no numbers come last where numbers are compared."""
    if not as_numbers:
        return sorted(items)
    values = {item: number_or_text(item) for item in items}

    def place(item: str) -> tuple[bool, Json]:
        return isinstance(values[item], str), values[item]

    return sorted(items, key=place)


def number_or_text(text: str) -> Value:
    """A finite number, or the text."""
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        return text
    return value if value.is_finite() else text


def slipped(value: Value) -> Value:
    """A wrong result of the same kind."""
    if isinstance(value, Decimal):
        return value + 1
    return value[::-1] if value != value[::-1] else f"{value}?"


def dressed(value: Value, now: ConversationState) -> str:
    """The result in the form that the rules ask for. What a rule dictates word for word stays as it is."""
    if "answer" in now.habits:
        return str(value)
    places = now.habits.get("decimals")
    if places and isinstance(value, Decimal):
        value = round(value, _DECIMALS.get(places.lower()) or int(places))
    text = f"{value:f}" if isinstance(value, Decimal) else value
    if unit := now.habits.get("unit"):
        text = f"{text} {unit}"
    form = now.habits.get("format", "").lower()
    if form == "json":
        bare = isinstance(value, Decimal) and not unit
        return f'{{"answer": {text if bare else json.dumps(text)}}}'
    return {"upper case": text.upper(), "lower case": text.lower()}.get(form, text)


def _without_ids(messages: Json) -> Json:
    """Messages without the ids of calls, which are new in each run."""
    if isinstance(messages, dict):
        return {
            name: _without_ids(one) for name, one in messages.items() if name not in ("id", "tool_call_id")
        }
    return [_without_ids(one) for one in messages] if isinstance(messages, list) else messages
