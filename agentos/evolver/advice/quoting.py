"""The evidence as a model reads it: short, and marked as data, because a trajectory may say anything.

A mark holds a digest of what stands in it, so nothing that was recorded before can close it early.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentos.domain import Check, Json, Step, digest, is_reference
from agentos.ports import Brief, Case, ObservedRun


@dataclass(frozen=True, slots=True)
class BriefLimits:
    """How much is told: tasks, characters of a text, steps of a run, tokens of the answer."""

    tasks: int
    text: int
    steps: int
    answer_tokens: int


WIDE = BriefLimits(tasks=6, text=600, steps=3, answer_tokens=8_192)
NARROW = BriefLimits(tasks=3, text=180, steps=1, answer_tokens=2_048)  # where the model finds WIDE too long
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
    tasks = list(dict.fromkeys([seen.task.id for seen in runs if not seen.passed] + [*by_id]))
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
    failing = [seen for seen in runs if not seen.passed]
    passing = [seen for seen in runs if seen.passed]
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
