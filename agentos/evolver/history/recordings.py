"""What runs left on record, in the form in which another run of the same work is served from it.

The trajectory is the record: each tool call is a step ``act`` that the worker sent after the call,
and each call with outside effects is besides a step ``external`` that the kernel stored before it
let the call happen. A call that was let happen and has no result may or may not have happened.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from agentos.domain import (
    Fault,
    Json,
    KernelFault,
    Origin,
    RecordedFetch,
    RecordedTool,
    Recording,
    Run,
    Snapshot,
    Step,
    Trial,
    call_key,
    canonical,
    digest,
    is_reference,
    word_of,
)
from agentos.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from agentos.ports import Blobs, Journal, ObservedRun

ACT, EXTERNAL, FETCH = "act", "external", "fetch"
# Steps of what only the kernel gives: a run without any of them is simply run again.
ASKED = frozenset({"model", EXTERNAL, FETCH, "person", "delegate"})
UNCERTAIN = "uncertain"

# What the kernel itself did outside while a call was made; a call that is served has none of it.
_OUTSIDE = frozenset({EXTERNAL, FETCH})
_NUMBER_MAX = 10_000  # equal calls of one run; a step is the word of a worker, which may lie
_UNSURE = {
    "type": UNCERTAIN,
    "message": "the call was begun and its result was lost: what it does outside may or may not have happened",
}
_OF_A_FAULT = ("type", "message", "where", "resource")
_BOOKKEEPING = frozenset({"recorded", "call", "usd"})
_TOO_LARGE = {"type": "limit", "message": "the call's recorded result was too large to be kept"}


def recording_of(
    snapshot: Snapshot,
    runs: Sequence[tuple[str, Sequence[Step]]],
    answers: Mapping[str, str] | None = None,
) -> Recording:
    """The recording of one run, or of the attempts at one task, oldest first: ids and whole steps.

    Attempts that go on from one another agree as far as both came: the n-th of equal calls has one
    result, whichever attempt has it.
    """
    found: dict[str, list[RecordedTool]] = {}
    begun: dict[str, RecordedTool] = {}
    count: dict[str, int] = {}
    for _, steps in runs:
        for key, calls in _calls(steps).items():
            known = found.setdefault(key, [])
            known += calls[len(known) :]
        for step in steps:
            number = _number(step)
            if number is not None:
                key = call_key(step.action["tool"], step.action["args"])
                begun[key] = RecordedTool(step.action["tool"], step.action["args"], None, _UNSURE)
                count[key] = max(count.get(key, 0), number + 1)
    for key, unsure in begun.items():
        known = found.setdefault(key, [])
        known += [unsure] * (count[key] - len(known))
    tools = tuple(call for calls in found.values() for call in calls)
    fetches = _fetches([step for _, steps in runs for step in steps])
    return Recording(tuple(run_id for run_id, _ in runs), snapshot, tools, answers or {}, fetches)


def recording_for_run(journal: Journal, blobs: Blobs, run: Run) -> Recording | None:
    """What the run took from outside, None where it asked for nothing."""
    steps = journal.steps(run.id)
    if not asks(steps):
        return None
    return recording_of(run.snapshot, [(run.id, whole(blobs, steps))], journal.answers(run.task_id))


def _fetches(steps: Iterable[Step]) -> tuple[RecordedFetch, ...] | None:
    """What was asked of the outside world; None where an earlier version did not keep what it answered."""
    found = []
    for step in steps:
        if step.node == FETCH:
            request, answer = step.action, step.observation
            whole = isinstance(request, dict) and isinstance(answer, dict) and "body" in request
            if not whole or not ("body" in answer or "type" in answer):
                return None
            found.append(RecordedFetch(request, answer))
    return tuple(found)


def fetch_key(request: Json) -> str:
    """Equal requests to the outside world have equal keys."""
    return digest(["fetch", request])


def _calls(steps: Iterable[Step]) -> dict[str, list[RecordedTool]]:
    """The calls of one trajectory that came to a tool, by key."""
    found: dict[str, list[RecordedTool]] = {}
    for step in steps:
        call = recorded_call(step)
        if call is not None:
            found.setdefault(call_key(call.tool, call.args), []).append(call)
    return found


def recorded_call(step: Step) -> RecordedTool | None:
    """The tool call that a step tells of; None when it tells of none that came to a tool."""
    if step.node != ACT or not _names_call(step.action):
        return None
    if step.fault is not None and word_of(step.fault) == "effect":
        return None  # refused before anybody was asked
    result, fault = step.observation, _on_the_wire(step.fault)
    if not (isinstance(result, dict) and "ok" in result):
        result, fault = {"ok": False}, _TOO_LARGE
    served = bool(result.get("recorded"))
    result = {name: value for name, value in result.items() if name != "recorded"}
    return RecordedTool(step.action["tool"], step.action["args"], result, fault, served)


def _on_the_wire(fault: Fault | None) -> Json:
    """What a box says, and is told, of a fault: whose it is the kernel adds on its side."""
    return {name: getattr(fault, name) for name in _OF_A_FAULT} if fault else None


def _names_call(action: Json) -> bool:
    """Without a path, no such tool was found."""
    return isinstance(action, dict) and {"tool", "args", "path"} <= set(action)


def _number(step: Step) -> int | None:
    """Which of the equal calls of its run was let happen with this step; None for other steps."""
    if step.node != EXTERNAL or not _names_call(step.action):
        return None
    number = step.action.get("number")
    return number if type(number) is int and 0 <= number < _NUMBER_MAX else None


def asks(steps: Iterable[Step]) -> bool:
    """Whether the run took something from outside its box: then a replay needs its record."""
    return any(step.node in ASKED for step in steps)


def whole(blobs: Blobs, steps: Iterable[Step]) -> list[Step]:
    """The steps of a run in the ledger with what was put away brought back.

    Raises Unavailable when a blob is gone: without it nobody knows what was done already.
    """
    return [
        replace(step, action=expanded(blobs, step.action), observation=expanded(blobs, step.observation))
        for step in steps
    ]


def in_full(blobs: Blobs, seen: ObservedRun) -> ObservedRun:
    """The run with all that was put away of its steps and its answer. Raises Unavailable, as ``whole``."""
    run = replace(seen.run, answer=expanded(blobs, seen.run.answer))
    return replace(seen, run=run, steps=tuple(whole(blobs, seen.steps)))


def expanded(blobs: Blobs, value: Json) -> Json:
    """The value that a stored one stands for. Raises Unavailable when its blob is gone."""
    # The ledger puts away a small value that only looks like a reference, so this is one of its own.
    if is_reference(value):
        try:
            return json.loads(blobs.get(value["blob"]))
        except NotFound as error:
            raise Unavailable(f"a step's record is gone: {error}") from None
    return value


# --- trajectories of trials, which are blobs ----------------------------------------------------


def packed(steps: Sequence[Step]) -> bytes:
    """A whole trajectory as one JSON list, each step by its field names."""
    return canonical(list(steps))


def unpacked(data: bytes) -> list[Step]:
    """The inverse."""
    return _steps(json.loads(data))


def _steps(items: Iterable[Json]) -> list[Step]:
    return [
        Step(
            **item
            | {
                "fault": _fault(item["fault"]) if item["fault"] else None,
                "started_at": datetime.fromisoformat(item["started_at"]),
            }
        )
        for item in items
    ]


def together(trajectories: Mapping[str, bytes]) -> bytes:
    """Several that are ``packed``, by their digests, in one blob: a disk flushes one file sooner than many."""
    return b"{%s}" % b",".join(b'"%s":%s' % (name.encode(), data) for name, data in trajectories.items())


def trajectory(blobs: Blobs, trial: Trial) -> list[Step]:
    """What the trial did, [] where nothing was kept of it. Raises NotFound once it is pruned, and Unavailable."""
    if not trial.steps_sha256:
        return []
    if not trial.steps_in:
        return unpacked(blobs.get(trial.steps_sha256))
    steps = json.loads(blobs.get(trial.steps_in)).get(trial.steps_sha256)
    if steps is None:
        raise Unavailable(f"the blob {trial.steps_in} is not what has the trajectory of {trial.id}")
    return _steps(steps)


def _fault(data: Mapping[str, str]) -> Fault:
    """Of a record from before origins these are missing."""
    origin, kind = Origin(data.get("origin", "")), KernelFault(data.get("kind", ""))
    return Fault(data["type"], data["message"], data["where"], data["resource"], origin, kind)


def told(steps: Iterable[Step]) -> list[Json]:
    """What a trajectory says beside times, prices and where an answer was taken from.

    Two runs of which one was served from the record of the other are equal in this.
    """
    return [
        [step.node, step.action, _without_bookkeeping(step.observation), _on_the_wire(step.fault)]
        for step in steps
        if step.node not in _OUTSIDE
    ]


def _without_bookkeeping(observation: Json) -> Json:
    if not isinstance(observation, dict):
        return observation
    return {name: value for name, value in observation.items() if name not in _BOOKKEEPING}
