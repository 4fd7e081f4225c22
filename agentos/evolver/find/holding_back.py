"""Which of the failing tasks no proposer is shown, and which runs of the others it may see.

From ``held_back`` failing tasks on, one of each so many stays hidden: an edit that fits what was shown and
not what the tasks have in common fails on these. Which ones is decided by a keyed hash of the work under the
home's consent key, so that nobody who only writes tasks can foresee or choose it. The order is the same for
all evolutions of a home: work that was hidden once is the first to be hidden again.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import replace

from agentos.domain import IMPORT, Evidence, Result, Run, Share, Task
from agentos.evolver.find import HoldBackContext, ReadContext
from agentos.ports import ObservedRun

GIVEN = "given:"  # cursors: the hold-out gave work of this key away, for good


def to_hide(parts: HoldBackContext, task_ids: Sequence[str]) -> tuple[str, ...]:
    """Of these failing tasks those that no proposer may see; none where there are too few."""
    every = parts.policy.evidence.held_back
    count = len(task_ids) // every if every else 0
    order = sorted(parts.tasks(tuple(task_ids)), key=lambda task: _place(parts.consent_key, task.key))
    chosen = {task.id for task in order[:count]}
    return tuple(task_id for task_id in task_ids if task_id in chosen)


def shown_part(evidence: Evidence, hidden: Sequence[str]) -> Evidence:
    """The evidence without what is hidden: all that a diagnosis, a brief or a review may be made of."""
    pairs = zip(evidence.run_ids, evidence.task_ids, strict=True)
    shown = [(run_id, task_id) for run_id, task_id in pairs if task_id not in hidden]
    run_ids, task_ids = (tuple(side) for side in zip(*shown, strict=True)) if shown else ((), ())
    return replace(evidence, run_ids=run_ids, task_ids=task_ids)


def is_open(parts: ReadContext, run: Run) -> bool:
    """Whether it may be shown: its work never was in the hold-out, or was given away by it."""
    return run.share is Share.OPEN or bool(parts.cursor.read(GIVEN + run.task_key))


def _place(key: bytes, task_key: str) -> bytes:
    return hmac.digest(key, f"held-back:{task_key}".encode(), "sha256")


RUNS_A_TASK = 4  # newest first; a passing one is kept beside failing ones where there is any


def runs_of(parts: ReadContext, tasks: Sequence[Task]) -> tuple[ObservedRun, ...]:
    """Open live runs of these tasks' work: first the failing ones of all, then those that pass; each newest first."""
    failing: list[ObservedRun] = []
    passing: list[ObservedRun] = []
    for task in tasks:
        found: list[ObservedRun] = []
        for run in parts.journal.runs_of(task.key, parts.policy.look_back.shown):
            if is_open(parts, run) and run.outcome is not None and run.sandbox != IMPORT:
                found.append(ObservedRun(task, run, tuple(parts.journal.steps(run.id))))
        passed = [seen for seen in found if seen.passed][:RUNS_A_TASK]
        failed = [seen for seen in found if _failed(seen)][: RUNS_A_TASK - bool(passed)]
        failing += failed
        passing += passed[: RUNS_A_TASK - len(failed)]
    return (*failing, *passing)


def _failed(seen: ObservedRun) -> bool:
    outcome = seen.run.outcome
    return outcome is not None and outcome.result in (Result.FAILED, Result.TIMEOUT, Result.BUDGET)
