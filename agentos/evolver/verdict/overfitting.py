"""Hidden tasks that fail as the evidence does: an edit that mends only what was shown is over-fitted.

A hold-out task that fails on the base with the evidence's own fingerprint is, as far as anybody can tell,
one more case of the same failure, and no proposer has seen it. An edit that repairs the cause repairs some
of them; one that fits the shown tasks (their names, numbers or answers) repairs none. They are tried with
every candidate that comes so far, also where they fail too steadily to serve as a hold-out, and marked in
their trials (``Trial.alike``), so that the verdict can be computed again from these.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentos.domain import Arm, Result, Trial, TrialSet
from agentos.evolver.policy import Judge

TASKS_MIN = 2  # of one alone it could be that it fails for a reason of its own
REPEATS = 2  # trials of such a task that serves in no pair


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


def _passed(trial: Trial) -> bool:
    return trial.outcome.result is Result.PASSED
