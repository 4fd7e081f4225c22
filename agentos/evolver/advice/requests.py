"""The requests: what a model is told, and how it is asked again. The texts stand in evolver/asking.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from agentos import shipped
from agentos.domain import Json, Layer, ResourceId
from agentos.evolver.advice.quoting import BriefLimits, QuotedEvidence, flat, quoted
from agentos.evolver.memory.lessons import lessons_in
from agentos.ports import Brief

NAME = "model"
HISTORY_MAX = 6  # earlier attempts that are told, the newest ones
WRONG_MAX = 4_000  # characters of an answer that is shown to its author again


@dataclass(slots=True)
class RequestDraft:
    """A request in the making."""

    system: str
    user: str
    more: list[Mapping[str, Json]] = field(default_factory=list)
    one_object: bool = False  # findings and edit as one JSON object, by the server's grammar where it has one

    def again(self, fault: str, answer: str = "", repair: str = "") -> None:
        """Say what was wrong with the answer; "" where there was none to show."""
        said = repair.replace("{fault}", fault).strip()
        if answer:
            self.more += [
                {"role": "assistant", "content": answer[:WRONG_MAX]},
                {"role": "user", "content": said},
            ]
        else:
            self.user += f"\n\n{said}"

    def request(self, answer_tokens: int) -> Mapping[str, Json]:
        """As a chat completion request."""
        first = [{"role": "system", "content": self.system}, {"role": "user", "content": self.user}]
        form = {"response_format": _ONE_OBJECT} if self.one_object else {}
        return {"messages": [*first, *self.more], "max_tokens": answer_tokens, **form}


_TEXT, _TEXTS = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
_FIELDS = {
    "cause": _TEXT, "why_this_layer": _TEXT, "summary": _TEXT, "predicted_fixes": _TEXTS, "tasks_at_risk": _TEXTS,
    "name": _TEXT, "description": _TEXT, "block": _TEXT,
}  # fmt: skip
_ONE_OBJECT: Json = {
    "type": "json_schema",
    "json_schema": {
        "name": "edit",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": _FIELDS,
            "required": [*_FIELDS],
            "additionalProperties": False,
        },
    },
}


@cache
def texts() -> Mapping[str, Any]:
    """The authored texts."""
    return tomllib.loads((shipped.folder("evolver") / "asking.toml").read_text(encoding="utf-8"))


def with_data(text: str) -> str:
    """The text with the sentence on what is data."""
    return text.replace("{data}", texts()["data"].strip()).strip()


def talk(
    brief: Brief,
    room: BriefLimits,
    told: QuotedEvidence,
    form: str,
    own: Sequence[str],
    names: Sequence[ResourceId],
) -> RequestDraft:
    """The request for an edit. ``own`` are this proposer's edits for the brief so far."""
    said = texts()["propose"]
    new = not brief.path
    example = said["examples"]["tool"].strip()
    system = with_data(said["system"])
    for key, text in (
        ("job", said["jobs"][_job(brief)].strip()),
        ("manifest", said["manifest_new" if new else "manifest"]),
        ("form", said["forms"][_form(brief, form)].strip()),
        ("tool_example", f"```\n{example}"),
    ):
        system = system.replace("{" + key + "}", text)
    parts = [_diagnosis(brief), told.text]
    if new:
        there = ", ".join(name.name for name in names if name.kind.value == brief.layer.value)
        parts.append(f"Write a new {brief.layer.value}. There are: {there or 'none yet'}.")
    else:
        parts.append(f"The file {brief.path}:\n{quoted(_shown(brief))}")
    parts += [record_of(brief, NAME), _history(brief, room), _parents(brief), _own(own)]
    return RequestDraft(system, "\n\n".join(part for part in parts if part))


def record_of(brief: Brief, proposer: str) -> str:
    """What earlier edits of this proposer came to: counts, and no word of anybody else's."""
    said = brief.calibration.get(proposer, "")
    return f"Your record so far. Predict what you expect, it is measured:\n{said}" if said else ""


def _diagnosis(brief: Brief) -> str:
    return f"The diagnosis:\n{quoted(brief.why)}" if brief.why else ""


def _job(brief: Brief) -> str:
    is_tool = brief.layer in (Layer.TOOL, Layer.SKILL) and brief.path.endswith(".py")
    return "tool_change" if is_tool else brief.layer.value


def _form(brief: Brief, form: str) -> str:
    if not brief.path:
        return brief.layer.value
    if brief.layer is Layer.MEMORY:
        return "memory_change" if lessons_in(brief.source) else "memory"
    return form


def _shown(brief: Brief) -> str:
    """The file; of a memory the lessons alone, without their ids."""
    if brief.layer is not Layer.MEMORY:
        return brief.source.rstrip()
    return "\n".join(f"- {lesson.text}" for lesson in lessons_in(brief.source)) or "no lesson yet"


def _history(brief: Brief, room: BriefLimits) -> str:
    """What was tried before; its words are a model's or a program's, so they are data too."""
    lines = [
        f"{earlier.layer.value}: {flat(earlier.summary, room.text)}: {flat(earlier.end, room.text)}"
        for earlier in brief.history[-HISTORY_MAX:]
    ]
    if not lines:
        return ""
    return "Tried before, and it was not enough. Do something else:\n" + quoted("\n".join(lines))


def _parents(brief: Brief) -> str:
    """Edits that came close; that their author was a model makes them data as well."""
    return "\n\n".join(
        f"One edit came close: {parent.says}. It was not enough as it stands; you may start from it:\n"
        + quoted(f"{parent.summary}\n{parent.diff}")
        for parent in brief.parents
    )


def _own(own: Sequence[str]) -> str:
    if not own:
        return ""
    return "You proposed these edits already. Propose another one:\n" + quoted("\n".join(own))


def choice(brief: Brief, told: QuotedEvidence, files: Mapping[str, str]) -> RequestDraft:
    """The request for the name of the file to edit. ``files``: path -> its first line."""
    listed = "\n".join(f"{path}: {first}" for path, first in files.items())
    parts = [_diagnosis(brief), told.text, f"The files:\n{quoted(listed)}"]
    return RequestDraft(with_data(texts()["propose"]["choose"]), "\n\n".join(part for part in parts if part))


def rule_choice(brief: Brief, told: QuotedEvidence, rules: Sequence[str]) -> RequestDraft:
    """The request for the number of one of the rules."""
    listed = "\n".join(f"{number}. {rule}" for number, rule in enumerate(rules, 1))
    parts = [_diagnosis(brief), told.text, f"The rules:\n{listed}"]
    return RequestDraft(
        with_data(texts()["propose"]["choose_rule"]), "\n\n".join(part for part in parts if part)
    )
