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

from agentos.domain import IMPORT, Evidence, Result, Run, Share, Task, work_of
from agentos.evolver.find import HoldBackContext
from agentos.evolver.states import ReadContext
from agentos.ports import ObservedRun

GIVEN = "given:"  # cursors: the hold-out gave work of this key away, for good


def to_hide(parts: HoldBackContext, task_ids: Sequence[str]) -> tuple[str, ...]:
    """Of these failing tasks those that no proposer may see; none where there are too few.

    Work is hidden as a whole: who is shown one of two tasks that ask for the same is shown both.
    """
    every = parts.policy.evidence.held_back
    works: dict[str, list[Task]] = {}
    for task in parts.tasks(tuple(task_ids)):
        works.setdefault(work_of(task), []).append(task)
    count = len(works) // every if every else 0
    order = sorted(works.values(), key=lambda same: min(_place(parts.consent_key, task.key) for task in same))
    chosen = {task.id for same in order[:count] for task in same}
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


def runs_of(parts: ReadContext, tasks: Sequence[Task]) -> tuple[ObservedRun, ...]:
    """Open live runs of these tasks' work: first the failing ones of all, then those that pass; each newest first."""
    most = parts.policy.look_back.observed  # a passing one is kept beside failing ones where there is any
    failing: list[ObservedRun] = []
    passing: list[ObservedRun] = []
    for task in tasks:
        found: list[ObservedRun] = []
        for run in parts.journal.runs_of(task.key, parts.policy.look_back.shown):
            if is_open(parts, run) and run.outcome is not None and run.sandbox != IMPORT:
                found.append(ObservedRun(task, run, tuple(parts.journal.steps(run.id))))
        passed = [seen for seen in found if seen.passed][:most]
        failed = [seen for seen in found if _failed(seen)][: most - bool(passed)]
        failing += failed
        passing += passed[: most - len(failed)]
    return (*failing, *passing)


def _failed(seen: ObservedRun) -> bool:
    outcome = seen.run.outcome
    return outcome is not None and outcome.result in (Result.FAILED, Result.TIMEOUT, Result.BUDGET)
