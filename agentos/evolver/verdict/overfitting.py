"""Hidden tasks that fail as the evidence does: an edit that mends only what was shown is over-fitted.

A hold-out task that fails on the base with the evidence's own fingerprint is, as far as anybody can tell,
one more case of the same failure, and no proposer has seen it. An edit that repairs the cause repairs some
of them; one that fits the shown tasks (their names, numbers or answers) repairs none. They are tried with
every candidate that comes so far, also where they fail too steadily to serve as a hold-out, and marked in
their trials (``Trial.alike``), so that the verdict can be computed again from these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from agentos.domain import Arm, Evidence, Evolution, Result, Run, Share, Trial, TrialSet
from agentos.evolver.find.mining import inspect
from agentos.evolver.history.recordings import unpacked
from agentos.evolver.parts import Parts
from agentos.evolver.policy import Judge

TASKS_MIN = 2  # of one alone it could be that it fails for a reason of its own
REPEATS = 2  # trials of such a task that serves in no pair


def failing_alike(parts: Parts, evolution: Evolution, base: Sequence[Trial]) -> frozenset[str]:
    """The hold-out tasks among these trials of the base that fail in all of them as the evidence does."""
    wanted = parts.records.get(Evidence, evolution.evidence_id).fingerprint.id
    found: dict[str, bool] = {}
    for trial in base:
        if trial.set is TrialSet.HOLD_OUT and trial.arm is Arm.BASE:
            found[trial.task_id] = found.get(trial.task_id, True) and _fingerprint(parts, trial) == wanted
    return frozenset(task_id for task_id, alike in found.items() if alike)


def over_fitted(trials: Iterable[Trial], rules: Judge) -> str:
    """Why it mends only what was shown, "" where that cannot be said."""
    own = [trial for trial in trials if trial.arm is Arm.CANDIDATE]
    alike = [trial for trial in own if trial.alike]
    tasks = {trial.task_id for trial in alike}
    if len(tasks) < TASKS_MIN or any(_passed(trial) for trial in alike):
        return ""
    shown = [_passed(trial) for trial in own if trial.set is TrialSet.EVIDENCE]
    # What repairs few of the shown tasks may by chance repair none of so many others.
    if not shown or (1 - sum(shown) / len(shown)) ** len(tasks) > rules.beta:
        return ""
    return (
        f"{sum(shown)} of {len(shown)} trials of the evidence pass with it, and none of {len(tasks)} hidden "
        "tasks that fail alike: it fits the tasks that were shown, not what they have in common"
    )


def _fingerprint(parts: Parts, trial: Trial) -> str:
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


def _passed(trial: Trial) -> bool:
    return trial.outcome.result is Result.PASSED
