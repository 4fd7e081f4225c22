"""Which hidden tasks fail as the evidence does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from agentos.domain import Arm, Evidence, Evolution, Result, Run, Share, Trial, TrialSet
from agentos.evolver.find.mining import inspect
from agentos.evolver.history.recordings import unpacked
from agentos.evolver.select import ComparisonContext


def failing_alike(parts: ComparisonContext, evolution: Evolution, base: Sequence[Trial]) -> frozenset[str]:
    """The hold-out tasks among these trials of the base that fail in all of them as the evidence does."""
    wanted = parts.records.get(Evidence, evolution.evidence_id).fingerprint.id
    found: dict[str, bool] = {}
    for trial in base:
        # Under other names it made another call than its task says, which would look like its harness' fault.
        if trial.set is TrialSet.HOLD_OUT and trial.arm is Arm.BASE and not trial.renamed:
            found[trial.task_id] = found.get(trial.task_id, True) and _fingerprint(parts, trial) == wanted
    return frozenset(task_id for task_id, alike in found.items() if alike)


def _fingerprint(parts: ComparisonContext, trial: Trial) -> str:
    """Of the failure that a trial shows; "" where it passed."""
    if trial.outcome.result is Result.PASSED or not trial.steps_sha256:
        return ""
    task = parts.journal.task(trial.task_id)
    steps = unpacked(parts.blobs.get(trial.steps_sha256))
    used = parts.journal.runs_of(task.key, 1)
    run = Run(
        id=trial.id,
        task_id=task.id,
        task_key=task.key,
        share=Share.HOLD_OUT,
        attempt=1,
        snapshot=trial.snapshot,
        sandbox=trial.sandbox,
        level=trial.level,
        started_at=datetime.now(UTC),
        outcome=trial.outcome,
        resources=used[0].resources if used else (),
    )
    failure = inspect(parts, run, steps)
    return failure.fingerprint.id if failure else ""
