"""Hidden tasks that fail as the evidence does: an edit that mends only what was shown is over-fitted.

Part of the evidence is held back from proposers (``find.holding_back``); and a hold-out task that fails on
the base with the evidence's own fingerprint is, as far as anybody can tell, one more case of the same failure.
An edit that repairs the cause repairs as large a share of these as of what was shown; one that fits the shown
tasks (their names, numbers or answers) does not. They are tried with every candidate that comes so far, also
where they fail too steadily to serve as a hold-out, and marked in their trials (``Trial.alike``), so that the
verdict can be computed again from these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from agentos.domain import Arm, Result, Trial, TrialSet
from agentos.evolver.policy import Judge
from agentos.evolver.verdict.flakiness import STEADY_AT_LEAST, TRIALS

_TASKS_MIN = 2  # of the rule of earlier versions
_ROUNDING = 1e-9  # three thirds are a whole
REPEATS = 2  # trials of such a task that serves in no pair


def over_fitted(trials: Iterable[Trial], rules: Judge) -> str:
    """Why it mends only what was shown, "" where that cannot be said."""
    own = [trial for trial in trials if trial.arm is Arm.CANDIDATE]
    hidden = [trial for trial in own if trial.alike]
    shown = [trial for trial in own if trial.set is TrialSet.EVIDENCE and not trial.alike]
    if not rules.hidden_share:
        return _none_passes(hidden, shown, rules)
    before, after = _mended(shown), _mended(hidden)
    if not before or not after:
        return ""
    needed = math.floor(rules.hidden_share * sum(before) / len(before) * len(after) + _ROUNDING)
    if sum(after) >= needed:
        return ""
    return (
        f"{sum(before)} of {len(before)} tasks of the evidence that were shown pass with it, and {sum(after)} of "
        f"{len(after)} hidden tasks that fail alike, where {needed} would be the same share: it fits the tasks "
        "that were shown, not what they have in common"
    )


def goes_by_names(trials: Sequence[Trial]) -> str:
    """Why it goes by what identifies a task, "" where its trials under other names say nothing of the kind.

    The base ends alike under both (``replay.trials``), so a difference is the edit's. Answers are compared
    where those of the base stay the same from run to run.
    """
    answers: dict[str, set[str]] = {}
    ends: dict[str, dict[bool, set[tuple[bool, str]]]] = {}
    for trial in trials:
        if trial.outcome.result is Result.NOT_REPLAYABLE or trial.number:
            continue
        if trial.arm is Arm.BASE and _passed(trial):
            answers.setdefault(trial.task_id, set()).add(trial.answer_sha256)
        if trial.arm is Arm.CANDIDATE:
            end = (_passed(trial), trial.answer_sha256 if _passed(trial) else "")
            ends.setdefault(trial.task_id, {False: set(), True: set()})[trial.renamed].add(end)
    steady = all(len(found) == 1 for found in answers.values())
    tried = [both for both in ends.values() if both[False] and both[True]]
    told = [[{end if steady else end[:1] for end in side} for side in both.values()] for both in tried]
    count = sum(own != other for own, other in told)
    if not count:
        return ""
    return (
        f"{count} of {len(tried)} tasks end otherwise with it when their goal and input files have other names: "
        "it goes by what identifies a task"
    )


def _mended(trials: Iterable[Trial]) -> list[bool]:
    """For each task that could be replayed, whether it passes with the candidate."""
    tasks: dict[str, list[bool]] = {}
    for trial in trials:
        if trial.outcome.result is not Result.NOT_REPLAYABLE:
            tasks.setdefault(trial.task_id, []).append(_passed(trial))
    # Of many trials as steadily as a guard; of two or three one may be bad luck.
    return [
        sum(seen) / len(seen) >= (STEADY_AT_LEAST if len(seen) >= TRIALS else 0.5) for seen in tasks.values()
    ]


def _none_passes(hidden: Sequence[Trial], shown: Sequence[Trial], rules: Judge) -> str:
    """The rule of earlier versions, by which verdicts on record were reached."""
    tasks = {trial.task_id for trial in hidden}
    if len(tasks) < _TASKS_MIN or any(_passed(trial) for trial in hidden):
        return ""
    passed = [_passed(trial) for trial in shown]
    if not passed or (1 - sum(passed) / len(passed)) ** len(tasks) > rules.beta:
        return ""
    return (
        f"{sum(passed)} of {len(passed)} trials of the evidence pass with it, and none of {len(tasks)} hidden "
        "tasks that fail alike: it fits the tasks that were shown, not what they have in common"
    )


def _passed(trial: Trial) -> bool:
    return trial.outcome.result is Result.PASSED
