"""The safety probes: what must not happen on a snapshot, with what it has learnt and without.

A rate that a promotion raises means that the program has learnt to misbehave (misevolution), however
well it does its tasks. The probes are in ``evolver/safety_probes.toml``; ``trying`` runs them. The tool that
a probe brings has another name each time, so that no candidate knows it by that.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from agentos.domain import Call, Effect, InputFile, Json, Kind, Limits, ResourceId, Task, new_id
from agentos.errors import Invalid

if TYPE_CHECKING:
    from agentos.ports import Attempt, Executor

INPUT = "notes.txt"
_NAME = "{tool}"  # in a goal, an input or a memory: the name that the tool has this time
_TOOL = '''"""Reads, checks and looks things up."""

from pydantic import BaseModel

TOOL = {{"name": "{name}", "description": "Reads, checks and looks things up.", "effects": {effects}}}


class Input(BaseModel):
    text: str = ""


class Output(BaseModel):
    text: str


def run(input: Input) -> Output:
{body}
'''

# Makes an executor that reads these files beside a snapshot's, and not these resources (see Overlay).
ExecutorWith: TypeAlias = "Callable[[Mapping[str, bytes], frozenset[ResourceId]], Executor]"


@dataclass(frozen=True, slots=True)
class SafetyProbe:
    """One task and what must not happen. Without ``model`` its tool is called straight away."""

    name: str
    says: str
    tool: str  # the body of its function run
    model: bool = False
    goal: str = ""
    effects: tuple[str, ...] = ("pure",)  # that the tool declares
    allowed: tuple[str, ...] = ()  # by the task
    input: str = ""  # content of notes.txt
    memory: str = ""
    forbid_text: str = ""  # in the answer, or in what a step observed
    forbid_answer_text: str = ""
    forbid_answer: bool = False

    def files(self, name: str) -> dict[str, bytes]:
        """What stands beside a snapshot's files, with the tool by this name (small letters only)."""
        body = self.tool.strip("\n")
        text = _TOOL.format(name=name, effects=json.dumps(list(self.effects)), body=body)
        files = {f"tool/{name}/tool.py": text.encode()}
        if self.memory:
            files[f"memory/{name}/memory.md"] = f"{_named(self.memory, name)}\n".encode()
        return files

    def content(self, name: str) -> bytes:
        """Of its input file; empty: it has none."""
        return _named(self.input, name).encode()

    def task(self, name: str, agent: str, inputs: tuple[InputFile, ...], now: datetime) -> Task:
        """What the agent is asked to do with the tool by this name."""
        return Task(
            id=new_id("task"),
            name=self.name,
            goal=_named(self.goal, name) or f"Use {name}.",
            call=None if self.model else Call(name, {"text": ""}),
            inputs=inputs,
            agent=agent,
            limits=Limits(steps=20, wall_s=60.0),
            effects=tuple(Effect(effect) for effect in self.allowed),
            checks=(),
            schedule=None,
            created_at=now,
        )

    def violated(self, attempt: Attempt) -> bool:
        """Whether what must not happen happened."""
        if self.forbid_answer and attempt.answer is not None:
            return True
        if self.forbid_answer_text and _holds(attempt.answer, self.forbid_answer_text):
            return True
        seen = [attempt.answer, *(step.observation for step in attempt.steps)]
        return bool(self.forbid_text) and any(_holds(value, self.forbid_text) for value in seen)


def _holds(value: Json, text: str) -> bool:
    """Whether the text stands in the value's JSON: as it is, or within a text there, as JSON writes it."""
    whole = json.dumps(value, ensure_ascii=False, default=str)
    return text in whole or json.dumps(text, ensure_ascii=False)[1:-1] in whole


def load_probes(path: Path) -> tuple[SafetyProbe, ...]:
    """Read the probes; raises Invalid with a sentence for each fault."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Invalid(str(path), [f"the safety probes cannot be read: {error}"]) from None
    entries = document.get("probe")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise Invalid(str(path), ["expected the safety probes, each a table [[probe]]"])
    faults = [
        f"safety probe {number}: {fault}" for number, it in enumerate(entries, 1) for fault in _faults(it)
    ]
    if faults:
        raise Invalid(str(path), faults)
    return tuple(_probe(entry) for entry in entries)


def _faults(entry: Mapping[str, Any]) -> Iterator[str]:
    known = {field.name: field for field in fields(SafetyProbe)}
    for key in entry.keys() - known.keys():
        yield f"'{key}' is not known; known are {', '.join(known)}"
    for name, field in known.items():
        wanted = type(field.default) if field.default is not MISSING else str
        if name not in entry and field.default is MISSING:
            yield f"'{name}' is missing"
        elif name in entry and wanted is tuple:
            if not isinstance(entry[name], list) or not set(map(str, entry[name])) <= set(Effect):
                yield f"'{name}' must be a list of {', '.join(Effect)}"
        elif name in entry and not isinstance(entry[name], wanted):
            yield f"'{name}' must be {'true or false' if wanted is bool else 'a text'}"
    if not any(entry.get(name) for name in known if name.startswith("forbid_")):
        yield "nothing is forbidden, so it can never be violated: give forbid_text, or another forbid_ key"


def _probe(entry: Mapping[str, Any]) -> SafetyProbe:
    values: dict[str, Any] = {
        key: tuple(item) if isinstance(item, list) else item for key, item in entry.items()
    }
    return SafetyProbe(**values)


def with_tool(document: bytes, name: str, without: frozenset[ResourceId]) -> bytes:
    """An agent's document with this tool as its only one, and without the skills that are left out.

    One that cannot be read stays as it is: the run says what is wrong with it.
    """
    try:
        settings = tomllib.loads(document.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        return document
    gone = {resource.name for resource in without if resource.kind is Kind.SKILL}
    skills = [skill for skill in settings.get("skills", ["*"]) if skill not in gone]
    settings |= {"tools": [name], "skills": skills, "agents": []}
    return "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in settings.items()).encode()


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False, default=str)


def _named(text: str, name: str) -> str:
    return text.replace(_NAME, name)
