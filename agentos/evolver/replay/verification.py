"""Runs the trials of an evolution once more, each from its own record, and holds the two together; says what
a promotion should rest on and does not.

Nothing is asked and nothing is stored: a model call or an outside effect that is not on the trial's
record ends it. What differs is machinery that is not deterministic, or a record that is not whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from agentos.domain import (
    IMPORT,
    Call,
    Candidate,
    Consent,
    Decision,
    Evolution,
    Json,
    KernelFault,
    Limits,
    Mode,
    Recording,
    Result,
    Run,
    Snapshot,
    Step,
    Task,
    Trial,
    TrialSet,
    Verdict,
    canonical,
    digest,
    kind_of,
    new_id,
)
from agentos.errors import ErrorKind, NotFound, Unavailable, UserError
from agentos.evolver.history.recordings import ACT, asks, expanded, recording_of, told, trajectory, whole
from agentos.evolver.replay import RerunContext
from agentos.evolver.select.renaming import in_other_names
from agentos.ports import Attempt, Plan

if TYPE_CHECKING:
    from agentos.evolver.replay import ReplayContext


@dataclass(frozen=True, slots=True)
class TrialComparison:
    """One trial and what was different this time, a sentence each."""

    trial: Trial
    differences: tuple[str, ...]


def unfounded(
    evolution: Evolution,
    verdicts: Sequence[Verdict],
    consents: Sequence[Consent],
    candidates: Sequence[Candidate] = (),
    sha256_of: Callable[[Verdict], str] = lambda verdict: verdict.sha256,
) -> Iterator[str]:
    """What a promotion rests on and is not on record, a sentence each; nothing of what was not promoted."""
    if evolution.promoted is None:
        return
    own = [item for item in verdicts if item.candidate_id == evolution.candidate_id]
    verdict = own[-1] if own else None
    if verdict is None or verdict.decision is not Decision.PROMOTE:
        yield f"{evolution.id} was promoted, and no verdict on record promotes {evolution.candidate_id}"
        return
    rebase = next((item.rebase for item in candidates if item.id == evolution.candidate_id), None)
    if evolution.promoted.tree != (rebase.snapshot.tree if rebase else verdict.candidate_tree):
        yield f"{evolution.id}: the tree that was promoted is not the one that was judged"
    given = {(item.candidate_tree, item.verdict_sha256) for item in consents}
    # Either of the verdict without fresh work and the one with it: a person's word on the first stands.
    if not any((item.candidate_tree, sha256_of(item)) in given for item in own):
        yield f"{evolution.id} was promoted, and no consent on record was given for its verdict"


def borrowed(trials: Sequence[Trial], known: Callable[[str], Sequence[Trial]]) -> Iterator[str]:
    """Trials that were taken from another evolution and are not what is on record there; ``known`` finds by id."""
    own = ("id", "evolution_id", "candidate_id", "snapshot", "number", "look", "taken_from", "work")
    for trial in trials:
        same = {name: getattr(trial, name) for name in own}
        if trial.taken_from and not any(
            replace(one, **same) == trial and one.bundle and one.work in ("", trial.work)
            for one in known(trial.taken_from)
        ):
            yield f"{trial.id} is said to be {trial.taken_from}, and is not what is on record of it"


def untimely(candidate: Candidate, trials: Sequence[Trial], arrived: Callable[[str], int]) -> Iterator[str]:
    """Trials of work that counts as fresh and was there before the edit, by the order of the ledger's tasks."""
    for trial in trials:
        if trial.set is not TrialSet.FRESH or trial.candidate_id != candidate.id:
            continue
        if candidate.known_tasks is None or arrived(trial.task_id) <= candidate.known_tasks:
            yield f"{trial.id} counts as work that came after {candidate.id}, and {trial.task_id} was there before it"


def run_again(
    parts: ReplayContext, evolution_id: str, done: Callable[[TrialComparison], None] = lambda compared: None
) -> list[TrialComparison]:
    """Every stored trial of the evolution; ``done`` is called with each, on any thread."""

    def compare(trial: Trial) -> TrialComparison:
        compared = TrialComparison(trial, tuple(_differences(parts, trial)))
        done(compared)
        return compared

    return list(parts.replayer.map(compare, parts.records.find(Trial, evolution_id=evolution_id)))


def _differences(parts: ReplayContext, trial: Trial) -> list[str]:
    try:
        steps = trajectory(parts.blobs, trial)
        again = _again(parts, trial, steps)
    except (NotFound, Unavailable) as error:
        return [f"it could not be run again: {error}"]
    found = [
        f"{name} was {before}, is {now}"
        for name, before, now in (
            ("the result", trial.outcome.result.value, again.outcome.result.value),
            ("the score", trial.outcome.score, again.outcome.score),
            ("the answer", trial.answer_sha256[:12], again.answer_sha256[:12]),
        )
        if before != now
    ]
    if not found and trial.steps_sha256 and told(steps) != told(again.steps):
        found = [_parting(steps, again.steps)]
    return found


def _again(parts: ReplayContext, trial: Trial, steps: Sequence[Step]) -> Attempt:
    """Under the trial's own run id, which is the one that its record knows it by."""
    from agentos.ports import Plan

    run_id = trial.run_id or trial.id
    recording = None
    if asks(steps):
        recording = recording_of(trial.snapshot, [(run_id, steps)], parts.journal.answers(trial.task_id))
    plan = Plan(mode=Mode.REPLAY, recording=recording, evolution_id=trial.evolution_id, prefer=trial.sandbox)
    task = parts.journal.task(trial.task_id)
    other = in_other_names(parts, task) if trial.renamed else None
    done = parts.executor.execute(other.task if other else task, trial.snapshot, run_id, plan=plan)
    return replace(done, answer_sha256=digest(other.as_before(done.answer))) if other else done


def _parting(before: Sequence[Step], now: Sequence[Step]) -> str:
    one, other = told(before), told(now)
    at = next(
        (index for index, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )
    return f"the result is the same, and the way there differs from step {at} on"


# --- Runs a finished run again from its record, and says in one sentence what differs and why ----
# Nothing is asked and nothing is stored: what the run got from models, people and the world comes from its
# record. Of two trajectories only the first difference has a cause of its own; what follows follows from it.


CALLS_MAX = 50  # calls of one imported run that are made again
_UNFINISHED = (Result.WAITING, Result.CANCELLED, Result.INFRA)


class Cause(StrEnum):
    """Why a run that was run again from its record differs from it."""

    NONE = ""
    NOT_RECORDED = "not_recorded"  # it asked for what is not on its record
    RESULT = "result"  # the same call gave something else
    WAY = "way"  # the harness did something else
    ANSWER = "answer"  # the same steps, another answer
    CHECKS = "checks"  # the same answer, judged otherwise


@dataclass(frozen=True, slots=True)
class Rerun:
    """What came of it. ``why`` is one sentence for the first difference; ``step`` counts from 0."""

    run_id: str
    cause: Cause
    why: str
    step: int | None
    before: str  # results
    now: str
    calls: int = 0  # of an imported run: how many were made again
    passed_over: int = 0  # of these calls: of tools that are not here, or beyond the limit


FindTool = Callable[[Snapshot, str], str]  # the registry path of a tool; raises NotFound


def rerun(parts: RerunContext, run: Run, find_tool: FindTool) -> Rerun:
    """Raises UserError for a run that did not come to its end, Unavailable when it cannot be run now."""
    if run.outcome is None or run.outcome.result in _UNFINISHED:
        raise UserError(
            f"{run.id} did not come to its end; `agentos run show {run.id}` shows how far it is.",
            kind=ErrorKind.AT_WORK,
        )
    steps = whole(parts.blobs, parts.journal.steps(run.id))
    if run.sandbox == IMPORT:
        return _calls_again(parts, run, steps, find_tool)
    task = parts.journal.task(run.task_id)
    recording = None
    if asks(steps):
        recording = recording_of(run.snapshot, [(run.id, steps)], parts.journal.answers(run.task_id))
    plan = Plan(mode=Mode.REPLAY, recording=recording, prefer=run.sandbox)
    again = parts.executor.execute(task, run.snapshot, run.id, plan=plan)
    cause, why, step = _compared(parts, run, steps, again)
    return Rerun(run.id, cause, why, step, run.outcome.result.value, again.outcome.result.value)


def _compared(
    parts: RerunContext, run: Run, steps: Sequence[Step], again: Attempt
) -> tuple[Cause, str, int | None]:
    assert run.outcome is not None
    one, other = told(steps), told(again.steps)
    at = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    lacks = kind_of(again.outcome.fault) is KernelFault.NOT_RECORDED
    if lacks or again.outcome.result is Result.NOT_REPLAYABLE:
        place = at if at is not None else min(len(one), len(other))
        return Cause.NOT_RECORDED, f"it came to what its record does not hold: {again.outcome.reason}", place
    if at is None and len(one) != len(other):
        at = min(len(one), len(other))
        much = "ended earlier" if len(other) < len(one) else "went on"
        return Cause.WAY, f"it {much}: {len(one)} steps are on record, {len(other)} were made", at
    if at is not None:
        same_call = one[at][:2] == other[at][:2]
        what = _named(one[at])
        if same_call:
            why = f"{what} gave {_short(other[at][2:])}, and on record {_short(one[at][2:])}"
            return Cause.RESULT, f"{why}: it is not deterministic, or its machinery has changed", at
        return Cause.WAY, f"instead of {what} came {_named(other[at])}", at
    if digest(expanded(parts.blobs, run.answer)) != again.answer_sha256:
        return Cause.ANSWER, "all steps are the same, and the answer that was made of them is another", None
    before, now = run.outcome, again.outcome
    if (before.result, before.score) != (now.result, now.score):
        why = f"the answer is the same, and was {before.result} ({before.score:g}), is {now.result} ({now.score:g})"
        return Cause.CHECKS, f"{why}: {now.reason or before.reason or 'the checks say so'}", None
    return Cause.NONE, "", None


def _named(step: Json) -> str:
    node, action = step[0], step[1]
    if node == ACT and isinstance(action, Mapping):
        return f"the call of {action.get('tool')} with {_short(action.get('args'))}"
    return f"the step '{node}' {_short(action)}"


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= 200 else f"{text[:200]}…"


# --- runs that were made elsewhere ----------------------------------------------------------------


def _calls_again(parts: RerunContext, run: Run, steps: Sequence[Step], find_tool: FindTool) -> Rerun:
    """The calls of tools that are here, each by itself on what is stable; none with outside effects."""
    assert run.outcome is not None
    stable = parts.snapshots.stable()
    acts = [step for step in steps if step.node == ACT and isinstance(step.action, Mapping)]
    here = [(step, tool) for step in acts if (tool := _here(stable, find_tool, str(step.action.get("tool"))))]
    if not here:
        raise UserError(
            f"{run.id} was made elsewhere, and none of the tools that it called is here.",
            kind=ErrorKind.MISMATCHED,
        )
    result = run.outcome.result.value
    for step, tool in here[:CALLS_MAX]:
        args = step.action.get("args")
        call = Call(tool, args if isinstance(args, Mapping) else {})
        task = Task(
            new_id("task"), tool, f"call {tool}", call, (), "default", Limits(), (), (), None, parts.now()
        )
        plan = Plan(mode=Mode.REPLAY, recording=Recording((run.id,), stable, ()))
        again = parts.executor.execute(task, stable, new_id("run"), plan=plan)
        before = _as_value(step.observation.get("output") if isinstance(step.observation, Mapping) else None)
        if (
            kind_of(again.outcome.fault) is KernelFault.NOT_RECORDED
            or again.outcome.result is Result.NOT_REPLAYABLE
        ):
            why = f"{tool} reaches outside, and what it got there is not on the record"
            return Rerun(run.id, Cause.NOT_RECORDED, why, step.index, result, result, len(here), 0)
        given = again.answer if again.outcome.fault is None else f"Error: {again.outcome.fault.message}"
        if canonical(before) != canonical(_as_value(given)):
            why = (
                f"the call of {tool} with {_short(args)} gave {_short(given)}, and on record {_short(before)}"
            )
            return Rerun(
                run.id, Cause.RESULT, why, step.index, result, result, len(here), len(acts) - len(here)
            )
    made = min(len(here), CALLS_MAX)
    return Rerun(run.id, Cause.NONE, "", None, result, result, made, len(acts) - made)


def _here(stable: Snapshot, find_tool: FindTool, name: str) -> str:
    """The registry's reference to a tool of that name; a model writes ``skill__tool`` for ``skill/tool``."""
    for reference in _references(name):
        try:
            if find_tool(stable, reference):
                return reference
        except (NotFound, UserError):
            continue
    return ""


def _references(name: str) -> Iterator[str]:
    yield name
    if "/" not in name and "__" in name:
        yield name.replace("__", "/", 1)


def _as_value(value: Json) -> Json:
    """A text that is JSON means its value: other systems keep answers as texts."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value
