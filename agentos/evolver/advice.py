"""The requests: what a model is told, and how it is asked again. The texts stand in evolver/asking.toml."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import BaseModel, Field

from agentos import shipped
from agentos.domain import Check, Json, Kind, Layer, ResourceId, Step, digest, is_reference
from agentos.evolver.memory.lessons import lessons_in
from agentos.models.requests import ANSWER_MAX, Line, Unusable, json_in, spoken
from agentos.ports import Brief, Case, ObservedRun

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
    brief: Brief, room: BriefLimits, form: str, own: Sequence[str], names: Sequence[ResourceId]
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
    parts = [_diagnosis(brief), told_of(brief, room).text]
    if new:
        there = ", ".join(name.name for name in names if name.kind.value == brief.layer.value)
        parts.append(f"Write a new {brief.layer.value}. There are: {there or 'none yet'}.")
    else:
        parts.append(f"The file {brief.path}:\n{quoted(_shown(brief))}")
    if brief.layer is Layer.AGENT:
        parts += [_there(names, Kind.TOOL), _there(names, Kind.SKILL)]
    parts += [record_of(brief, NAME), _history(brief, room), _parents(brief), _own(own)]
    return RequestDraft(system, "\n\n".join(part for part in parts if part))


def _there(names: Sequence[ResourceId], kind: Kind) -> str:
    """What an agent may be given."""
    there = ", ".join(name.name for name in names if name.kind is kind)
    return f"There are these {kind.value}s: {there}." if there else ""


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


# --- What a model answered: findings as JSON, then one block with the edit. Anything else cannot be used


PLACEHOLDERS = frozenset({"what went wrong, in a sentence", "the edit in a few words", "the new line"})
# Within a line: over many empty lines it would look at each of them again from every other.
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[\w.+-]*[ \t\r]*$", re.MULTILINE)


class Declined(Exception):
    """The model sees no edit in this place that would help; the text says why."""


class ReplyManifest(BaseModel):
    """The manifest as the model writes it; other keys are not looked at."""

    cause: Line = Field(min_length=1, max_length=1_000)
    why_this_layer: Line = Field(min_length=1, max_length=1_000)
    summary: Line = Field(min_length=1, max_length=200)
    predicted_fixes: list[Line] = Field(min_length=1, max_length=100)
    tasks_at_risk: list[Line] = Field(max_length=100)
    name: Line = ""
    description: Line = Field("", max_length=1_000)
    block: str = Field("", max_length=ANSWER_MAX)  # the edit, where all was asked for in one object


def tasks_named(names: Sequence[str], labels: Mapping[str, str]) -> tuple[str, ...]:
    """The ids of those tasks that the model was told of, each once; it may name them by label or id."""
    known = {label.lower(): task_id for label, task_id in labels.items()}
    known |= {task_id.lower(): task_id for task_id in labels.values()}
    return tuple(dict.fromkeys(known[name.lower()] for name in names if name.lower() in known))


class NoEdit(BaseModel):
    """What a model answers that has no edit to propose."""

    no_edit: Line = Field(min_length=1, max_length=1_000)


@dataclass(frozen=True, slots=True)
class EditReply:
    """Both parts."""

    findings: ReplyManifest
    block: str


def parse(text: str) -> EditReply:
    """Raises Unusable with the first fault, and Declined."""
    said = spoken(text)
    try:
        found, rest = json_in(said, ReplyManifest)
    except Unusable:
        with suppress(Unusable):
            declined, _ = json_in(said, NoEdit)
            raise Declined(declined.no_edit) from None
        raise
    if found.cause in PLACEHOLDERS or found.summary in PLACEHOLDERS or found.block.strip() in PLACEHOLDERS:
        raise Unusable("it repeats the example; fill in what you found")
    return EditReply(found, _unfenced(found.block) if found.block.strip() else _block(rest))


def _unfenced(block: str) -> str:
    """The text without a fence around all of it."""
    fences = list(_FENCE.finditer(block.strip()))
    whole = len(fences) == 2 and fences[0].start() == 0 and fences[1].end() == len(block.strip())
    return _block(block) if whole else block.strip("\n")


def chosen_number(text: str, most: int) -> int:
    """The first whole number from 1 to ``most`` in the answer; 0 where there is none."""
    numbers = (int(found) for found in re.findall(r"(?<![\d.])\d{1,3}(?!\.?\d)", spoken(text)))
    return next((number for number in numbers if 1 <= number <= most), 0)


def _block(rest: str) -> str:
    """What stands between the first and the last fence: a page may have fences of its own."""
    fences = list(_FENCE.finditer(rest))
    if fences and not rest[: fences[0].start()].strip() and len(fences) % 2:
        fences = fences[1:]  # the one that closes the JSON object's own block
    if len(fences) < 2:
        raise Unusable("after the JSON object there is no block between two lines of three backticks")
    inner = rest[fences[0].end() : fences[-1].start()]
    return inner.strip("\n")


# --- The evidence as a model reads it: short, and marked as data, because a trajectory may say anything
# A mark holds a digest of what stands in it, so nothing that was recorded before can close it early.


@dataclass(frozen=True, slots=True)
class BriefLimits:
    """How much is told: tasks, characters of a text, steps of a run, tokens of the answer."""

    tasks: int
    text: int
    steps: int
    answer_tokens: int


WIDE = BriefLimits(tasks=6, text=600, steps=3, answer_tokens=8_192)
NARROW = BriefLimits(tasks=3, text=180, steps=1, answer_tokens=2_048)  # where the model finds WIDE too long
# a small model writes on until it is stopped
TINY = BriefLimits(tasks=3, text=180, steps=1, answer_tokens=512)
_STEP_NODES = frozenset({"call", "act", "tool", "delegate", "fetch"})  # steps that did something


@dataclass(frozen=True, slots=True)
class QuotedEvidence:
    """The evidence as text, and the task that each label stands for."""

    text: str
    labels: Mapping[str, str]


def quoted(text: str) -> str:
    """The text, marked as data."""
    mark = digest(["data", text])[:16]
    return f"<data {mark}>\n{text}\n</data {mark}>"


def flat(value: Json, most: int) -> str:
    """A JSON value on one line, cut in its middle; of a large one that lies in a blob, head and tail."""
    if is_reference(value):
        value = f"{value['head']} … {value['tail']}"
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= most else f"{text[: most * 2 // 3]} … {text[-(most // 3) :]}"


def told(
    runs: Sequence[ObservedRun],
    room: BriefLimits,
    cases: Sequence[Case] = (),
    working: Sequence[tuple[Case, Json]] = (),
) -> QuotedEvidence:
    """The failing tasks of the runs and cases, and the working calls beside them."""
    labels: dict[str, str] = {}
    parts: list[str] = []
    by_id = {case.task_id: case for case in cases}
    tasks = list(dict.fromkeys([seen.task.id for seen in runs if not seen.run.passed] + [*by_id]))
    for number, task_id in enumerate(tasks, 1):
        labels[f"T{number}"] = task_id
        if number <= room.tasks:
            its = [seen for seen in runs if seen.task.id == task_id]
            lines = list(_of_runs(its, room)) if its else list(_of_case(by_id[task_id], room))
            parts.append(f"Failing task T{number}:\n" + quoted("\n".join(lines)))
    if len(tasks) > room.tasks:
        parts.append(f"{len(tasks) - room.tasks} more tasks fail alike (T{room.tasks + 1} to T{len(tasks)}).")
    for number, (case, output) in enumerate(working, 1):
        labels[f"W{number}"] = case.task_id
        if number <= room.tasks:
            text = f"call: {_call(case, room)}\nresult: {flat(output, room.text)}"
            parts.append(f"Working task W{number}, which must go on working:\n{quoted(text)}")
    return QuotedEvidence("\n\n".join(parts), labels)


def told_of(brief: Brief, room: BriefLimits) -> QuotedEvidence:
    """All that a brief holds of it."""
    return told(brief.runs, room, brief.cases, brief.working_calls)


def _of_runs(runs: Sequence[ObservedRun], room: BriefLimits) -> Iterator[str]:
    """One failing run of the task, and, if there is one, a passing run beside it."""
    task = runs[0].task
    yield f"goal: {flat(task.goal, room.text * 2)}"
    if task.call is not None:
        yield f"call: {task.call.tool} {flat(dict(task.call.args), room.text)}"
    yield from _expected(task.checks, room)
    failing = [seen for seen in runs if not seen.run.passed]
    passing = [seen for seen in runs if seen.run.passed]
    if passing:
        yield f"it failed {len(failing)} times and passed {len(passing)} times"
    for seen in failing[:1]:
        outcome = seen.run.outcome
        yield f"its answer: {flat(seen.run.answer, room.text)}"
        yield f"why it failed: {flat(outcome.reason if outcome else '', room.text)}"
        yield from _steps(seen.steps, room)
    for seen in passing[:1]:
        yield f"a run that passed answered: {flat(seen.run.answer, room.text)}"
        yield from _steps(seen.steps, room)


def _of_case(case: Case, room: BriefLimits) -> Iterator[str]:
    yield f"call: {_call(case, room)}"
    yield from _expected(case.checks, room)


def _call(case: Case, room: BriefLimits) -> str:
    return f"{case.call.tool} {flat(dict(case.call.args), room.text)}"


def _expected(checks: Sequence[Check], room: BriefLimits) -> Iterator[str]:
    for check in checks:
        yield f"checked by {check.kind}: {flat(dict(check.spec), room.text)}"


def _steps(steps: Sequence[Step], room: BriefLimits) -> Iterator[str]:
    """The last steps with a fault, else the last ones that did something."""
    chosen = [step for step in steps if step.fault is not None] or [
        step for step in steps if step.node in _STEP_NODES
    ]
    for step in chosen[-room.steps :]:
        came = f"{step.fault.type}: {step.fault.message}" if step.fault is not None else step.observation
        yield f"step {step.index}: {step.node} {flat(step.action, room.text)} -> {flat(came, room.text)}"
