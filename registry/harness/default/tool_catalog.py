"""What the model may call: the run's tools, and what the kernel and the harness themselves offer."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

from agentos.worker.sdk import Sdk, SkillCard, ToolCall, ToolCard

Kind = Literal[
    "tool", "script", "read_skill", "read_output", "find_skills", "recall", "remember", "person", "agent"
]
_ASKS = ("recall", "remember", "person")  # what an agent may ask the kernel for, unless it says otherwise


@dataclass(frozen=True)
class Entry:
    """One thing to call. ``ref`` is the tool's or the agent's own name."""

    name: str
    kind: Kind
    ref: str
    description: str
    schema: dict[str, Any]

    def told(self, *, brief: bool) -> dict[str, Any]:
        """In the form of the protocol; ``brief`` leaves out what the parameters are for."""
        parameters = _lean(self.schema, {"title", "description"} if brief else {"title"})
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}

    def fits(self, words: Set[str]) -> int:
        """How many of the words its name and description share."""
        return len(words & words_of(f"{self.name} {self.description}"))


class ToolCatalog:
    """Everything on offer in this run, by the name that the model calls it."""

    def __init__(self, sdk: Sdk) -> None:
        self.skills = sdk.skills()
        self.entries: dict[str, Entry] = {}
        for entry in [*_own(sdk, self.skills), *_agents(sdk), *_tools(sdk)]:
            self.entries.setdefault(entry.name, entry)

    def told(self, *, reading_on: bool, brief: bool = False, goal: str = "") -> list[dict[str, Any]]:
        """All of it, in the form of the protocol; with a ``goal``, what shares most words with it first.

        ``read_output`` is left out until ``reading_on``: a small model calls whatever it is offered.
        """
        entries = [entry for entry in self.entries.values() if reading_on or entry.kind != "read_output"]
        if goal:
            words = words_of(goal)
            entries.sort(key=lambda entry: -entry.fits(words))
        return [entry.told(brief=brief) for entry in entries]


def words_of(text: str) -> set[str]:
    """Its words by their first five letters, so that "reads" and "reading" are one; short ones say nothing."""
    return {word[:5] for word in re.findall(r"[a-z]{4,}", text.lower())}


def call_of(entry: Entry, args: dict[str, Any]) -> ToolCall:
    """The call of a tool or of a skill's script that the model means."""
    if entry.kind == "tool":
        return ToolCall(entry.ref, args)
    skill, script = str(args.get("skill", "")), str(args.get("script", "")).removeprefix("./")
    given = {key: args[key] for key in ("args", "stdin") if args.get(key)}
    return ToolCall(f"{skill}/{script.removeprefix(f'{skill}/')}", given)


def _tools(sdk: Sdk) -> list[Entry]:
    """A tool whose effects the task does not allow is not offered."""
    allowed = {*sdk.task.effects, "pure"}
    cards = [card for card in sdk.tools() if set(card.effects) <= allowed]
    taken: set[str] = {_plain_name(card) for card in cards if card.path.startswith("tool/")}
    found = []
    for card in cards:
        name, ref = _plain_name(card), card.name
        if card.path.startswith("skill/"):
            skill = card.path.split("/")[1]
            name, ref = (f"{skill}__{name}" if name in taken else name), f"{skill}/{card.name}"
            taken.add(name)
        found.append(Entry(name[:64], "tool", ref, card.description, card.input_schema))
    return found


def _plain_name(card: ToolCard) -> str:
    return card.name.replace("-", "_")


def _agents(sdk: Sdk) -> list[Entry]:
    """The run is given the documents of those that its agent may ask."""
    schema = _schema(
        {
            "goal": ("string", "What it is to do, with everything that it has to know"),
            "inputs": ("array", "Files of the workspace that it gets a copy of"),
        },
        required=("goal",),
    )
    found = []
    for path in sdk.paths("agent/"):
        name = path.split("/")[1]
        if name == sdk.task.agent or not path.endswith("/resource.toml"):
            continue
        description = f"Hand a part of the task to the agent '{name}' and get its answer. "
        description += str(tomllib.loads(sdk.read(path)).get("description", ""))
        found.append(Entry(f"ask_{name.replace('-', '_')}"[:64], "agent", name, description, schema))
    return found


def _own(sdk: Sdk, skills: Sequence[SkillCard]) -> list[Entry]:
    asks = sdk.agent.get("asks", _ASKS)
    known = [
        Entry("read_output", "read_output", "", "Read on in a result that was cut, by its reference",
              _schema({"reference": ("string", "As it stands in the cut result, such as output:1"),
                       "offset": ("integer", "The first character; 0 is the beginning"),
                       "limit": ("integer", "How many characters, at most 8000")}, ("reference",))),
        Entry("read_skill", "read_skill", "", "Read what a skill explains, before you use its tools",
              _schema({"skill": ("string", "Its name"),
                       "file": ("string", "One of its other files; without it, SKILL.md")}, ("skill",))),
        Entry("run_script", "script", "", "Run a script that a skill brings, in the workspace; read the skill first",
              _schema({"skill": ("string", "Its name"),
                       "script": ("string", "As the skill names it, such as scripts/fill.py"),
                       "args": ("array", "The words behind it on its command line"),
                       "stdin": ("string", "What it reads from standard input, if anything")},
                      ("skill", "script"))),
        Entry("find_skills", "find_skills", "", "Look for skills beside those listed; try other words where none fits",
              _schema({"query": ("string", "What you want to do, in the words of whoever does such work"),
                       "limit": ("integer", "At most so many")}, ("query",))),
        Entry("recall", "recall", "", "Look up what was learnt in earlier tasks",
              _schema({"query": ("string", "A few words"), "limit": ("integer", "At most so many")},
                      ("query",))),
        Entry("remember", "remember", "", "Propose a lesson that will hold in other tasks too; a person decides",
              _schema({"text": ("string", "The lesson, in one or two sentences"),
                       "why": ("string", "What shows it")}, ("text",))),
        Entry("ask_person", "person", "", "Ask a person what only they can know or decide; it may take long",
              _schema({"question": ("string", "Complete in itself"),
                       "choices": ("array", "Answers to choose from, if there are some")}, ("question",))),
    ]  # fmt: skip
    if not skills:
        known = [entry for entry in known if entry.kind != "read_skill"]
    if not sdk.more_skills:
        known = [entry for entry in known if entry.kind != "find_skills"]
    if not any(skill.scripts for skill in skills):
        known = [entry for entry in known if entry.kind != "script"]
    return [entry for entry in known if entry.kind not in _ASKS or entry.kind in asks]


def _schema(properties: Mapping[str, tuple[str, str]], required: Sequence[str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, (kind, description) in properties.items():
        made[name] = {"type": kind, "description": description}
        if kind == "array":
            made[name]["items"] = {"type": "string"}
    return {"type": "object", "properties": made, "required": list(required)}


def _lean(value: Any, dropped: set[str]) -> Any:
    """Without these annotations. A property that bears such a name is a schema, no text, and stays."""
    if isinstance(value, list):
        return [_lean(item, dropped) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _lean(item, dropped)
        for key, item in value.items()
        if not (key in dropped and isinstance(item, str))
    }
