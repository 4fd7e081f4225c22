"""Canaries: work that was done before, tried again before anything else is risked.

Of each kind of work the newest quick run that passed is taken. Nothing is asked of anybody anew: what
the run took from outside comes from its record, and where the record does not reach, it says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentos.domain import Mode, Outcome, ResourceId, Result, Run, Share, Snapshot, Task, new_id
from agentos.errors import NotFound
from agentos.evolver.guards.assurance.box_challenge import RetryingExecutor
from agentos.evolver.history.recordings import asks, recording_of, whole
from agentos.evolver.promote import CanaryContext
from agentos.ports import Plan


@dataclass(frozen=True, slots=True)
class Canary:
    """A task, and where what it asks for comes from."""

    task: Task
    plan: Plan
    hidden: bool = False  # of the hold-out


def choose(parts: CanaryContext, resources: Sequence[ResourceId]) -> list[Canary]:
    """Of work that used one of these, as many kinds as the policy says."""
    found: dict[tuple[str, str], Canary] = {}
    for resource in dict.fromkeys(resources):
        for run in parts.journal.runs_using(str(resource), parts.policy.look_back.canaries):
            if len(found) >= parts.policy.probe.canaries:
                break
            task = _task(parts, run)
            kind = (task.agent, task.call.tool if task.call else "") if task else ("", "")
            if task is not None and kind not in found:
                found[kind] = _canary(parts, task, run)
    return list(found.values())


def _task(parts: CanaryContext, run: Run) -> Task | None:
    """The work of a run that can be a canary: it passed here, soon, and nobody's run handed it over."""
    outcome = run.outcome
    if outcome is None or outcome.result is not Result.PASSED or not run.is_live:
        return None
    if outcome.cost.wall_s > parts.policy.probe.run_s / 2:
        return None
    try:
        task = parts.journal.task(run.task_id)
    except NotFound:
        return None
    return None if task.parent else task


def _canary(parts: CanaryContext, task: Task, run: Run) -> Canary:
    steps = parts.journal.steps(run.id)
    recording = None
    if asks(steps):
        answers = parts.journal.answers(task.id)
        recording = recording_of(run.snapshot, [(run.id, whole(parts.blobs, steps))], answers)
    plan = Plan(mode=Mode.REPLAY, recording=recording, wall_s=parts.policy.probe.run_s)
    return Canary(task, plan, hidden=run.share is Share.HOLD_OUT)


def lost(parts: CanaryContext, canary: Canary, snapshot: Snapshot, base: Snapshot) -> str:
    """Why it fails on the snapshot, each of two times, and passes on the base, each of two times; else "".

    Later proposers read it: of hidden work it says nothing, and of no work what its checks expect.
    """
    why = _again(parts, canary, snapshot)
    if not why or not _again(parts, canary, snapshot):
        return ""
    if any(_again(parts, canary, base) != "" for _ in range(2)):
        return ""
    which = "a hold-out task" if canary.hidden else f"{canary.task.id} ({canary.task.name})"
    return f"{which} passes without the change and fails with it" + ("" if canary.hidden else f": {why}")


def _again(parts: CanaryContext, canary: Canary, snapshot: Snapshot) -> str | None:
    """Why it did not pass, "" when it did, None when its record does not reach so far."""
    executor = RetryingExecutor(parts.executor, parts.policy.replay.infra_retries)
    outcome = executor.execute(canary.task, snapshot, new_id("probe"), plan=canary.plan).outcome
    if outcome.result is Result.NOT_REPLAYABLE:
        return None
    return "" if outcome.result is Result.PASSED else _why(outcome)


def _why(outcome: Outcome) -> str:
    if outcome.fault is not None:
        return f"{outcome.fault.type}: {outcome.fault.message}"[:300]
    failed = ", ".join(sorted({check.kind for check in outcome.checks if not check.passed}))
    return f"its answer fails {failed}" if failed else outcome.result.value
