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
from collections.abc import Iterable, Sequence, Set

from agentos.domain import Arm, Refusal, RefusalKind, Result, Trial, TrialSet
from agentos.evolver.policy import STOOD, Judge, Policy
from agentos.evolver.verdict.pairing import unsteady

ROUNDING = 1e-9  # three thirds are a whole


def over_fitted(trials: Iterable[Trial], rules: Judge) -> Refusal | None:
    """Why it mends only what was shown; None where that cannot be said."""
    known = list(trials)
    own = [trial for trial in known if trial.arm is Arm.CANDIDATE]
    hidden = [trial for trial in own if trial.alike]
    shown = [trial for trial in own if trial.set is TrialSet.EVIDENCE and not trial.alike]
    if not rules.hidden_share:
        return _none_passes(hidden, shown, rules)
    if rules.hidden_gain:
        paired = {trial.task_id for trial in own if trial.number}
        if said := _gains_less(known, paired, rules):
            return said
        if any(trial.task_id in paired for trial in shown):
            hidden = [trial for trial in hidden if trial.task_id not in paired]
            shown = [trial for trial in shown if trial.task_id not in paired] or shown
    before, after = mended(shown, rules), mended(hidden, rules)
    if not before or not after:
        return None
    needed = math.floor(rules.hidden_share * sum(before) / len(before) * len(after) + ROUNDING)
    if sum(after) >= needed:
        return None
    return Refusal(
        RefusalKind.OVER_FITTED,
        f"{sum(before)} of {len(before)} tasks of the evidence that were shown pass with it, and {sum(after)} of "
        f"{len(after)} hidden tasks that fail alike, where {needed} would be the same share: it fits the tasks "
        "that were shown, not what they have in common",
    )


def _gains_less(trials: Sequence[Trial], paired: Set[str], rules: Judge) -> Refusal | None:
    """Why tasks that vary and are hidden gain less by it than those that were shown; None where luck may do that.

    Of one task nobody can say that it is mended: a repair that lifts each from 0.3 to 0.7 mends half of them by
    any mark. So the gains are compared, over all pairs of each side, and a smaller one speaks against the edit
    where the rates with it differ by more than chance (``rarer``).
    """
    made = [trial for trial in trials if trial.task_id in paired and trial.set is TrialSet.EVIDENCE]
    owns = {_pair(trial): trial for trial in made if trial.arm is Arm.CANDIDATE and trial.number}
    seen: dict[bool, list[tuple[bool, bool]]] = {False: [], True: []}  # by whether it was hidden
    for base in made:
        own = owns.get(_pair(base)) if base.arm is Arm.BASE else None
        if own and Result.NOT_REPLAYABLE not in (base.outcome.result, own.outcome.result):
            seen[own.alike].append((_passed(base), _passed(own)))
    if not all(seen.values()):
        return None
    gain = {side: sum(own - base for base, own in found) / len(found) for side, found in seen.items()}
    rates = {side: (sum(own for _, own in found), len(found)) for side, found in seen.items()}
    if gain[True] >= rules.hidden_gain * gain[False] or rarer(rates[True], rates[False]) > rules.beta:
        return None
    return Refusal(
        RefusalKind.OVER_FITTED,
        f"tasks of the evidence that were shown pass oftener by {gain[False]:+.2f} with it, and hidden ones by "
        f"{gain[True]:+.2f}: it fits the tasks that were shown, not what they have in common",
    )


def rarer(some: tuple[int, int], others: tuple[int, int]) -> float:
    """Chance that so few of ``some`` passed (passed, of), if they pass as often as ``others``: Fisher's exact test."""
    passed, of = some[0] + others[0], some[1] + others[1]
    ways = sum(
        math.comb(some[1], count) * math.comb(others[1], passed - count)
        for count in range(max(0, passed - others[1]), some[0] + 1)
    )
    return ways / math.comb(of, passed)


def _pair(trial: Trial) -> tuple[str, int]:
    return trial.task_id, trial.repeat


def goes_by_names(trials: Sequence[Trial], policy: Policy) -> Refusal | None:
    """Why it goes by what identifies a task; None where its trials under other names say nothing of the kind.

    The base ends alike under both (``replay.trials``), so a difference is the edit's. Answers are compared
    where those of the base stay the same from run to run. A set that is flaky is tried under both names in pairs.
    """
    paired = policy.edition >= STOOD
    shaken = unsteady(trials) - (frozenset() if paired else {TrialSet.EVIDENCE})
    told = _told_apart([trial for trial in trials if trial.set not in shaken])
    count = sum(own != other for own, other in told)
    if count:
        return Refusal(
            RefusalKind.BY_NAME,
            f"{count} of {len(told)} tasks end otherwise with it when their goal and input files have other names: "
            "it goes by what identifies a task",
        )
    return _passes_less_renamed(trials, policy.judge) if paired else None


def names_undecided(trials: Iterable[Trial], policy: Policy) -> bool:
    """Whether some task passes in each pair under its own names and in none under others, in too few pairs to tell."""
    return any(
        own[0] == own[1] and not other[0] and rarer(other, own) > policy.judge.alpha
        for own, other in _by_names(trials).values()
    )


def _passes_less_renamed(trials: Sequence[Trial], rules: Judge) -> Refusal | None:
    """By pairs of which every other one had other names, of one task or all together: as far as chance does not."""
    tasks = [*_by_names(trials).values()]
    plain, renamed = (
        (sum(ends[side][0] for ends in tasks), sum(ends[side][1] for ends in tasks)) for side in (0, 1)
    )
    for own, other in [*tasks, (plain, renamed)]:
        if rarer(other, own) <= rules.alpha:
            return Refusal(
                RefusalKind.BY_NAME,
                f"{other[0]} of {other[1]} trials pass with it when their goal and input files have other names, and "
                f"{own[0]} of {own[1]} under their own: it goes by what identifies a task",
            )
    return None


def _by_names(trials: Iterable[Trial]) -> dict[str, tuple[tuple[int, int], tuple[int, int]]]:
    """Of each task with pairs under both: (passed, of) with the candidate under its own names, and under others."""
    found: dict[str, dict[bool, list[bool]]] = {}
    for trial in trials:
        if trial.arm is Arm.CANDIDATE and trial.number and trial.outcome.result is not Result.NOT_REPLAYABLE:
            found.setdefault(trial.task_id, {False: [], True: []})[trial.renamed].append(_passed(trial))
    return {
        task_id: ((sum(ends[False]), len(ends[False])), (sum(ends[True]), len(ends[True])))
        for task_id, ends in found.items()
        if ends[False] and ends[True]
    }


def _told_apart(trials: Sequence[Trial]) -> list[list[set[tuple[bool | str, ...]]]]:
    """How each task that was tried under both names ended under its own, and under others."""
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
    return [[{end if steady else end[:1] for end in side} for side in both.values()] for both in tried]


def mended(trials: Iterable[Trial], rules: Judge) -> list[bool]:
    """For each task that could be replayed, whether it passes with the candidate."""
    tasks: dict[str, list[bool]] = {}
    for trial in trials:
        if trial.outcome.result is not Result.NOT_REPLAYABLE:
            tasks.setdefault(trial.task_id, []).append(_passed(trial))
    # Of many trials as steadily as a guard; of two or three one may be bad luck.
    return [
        sum(seen) / len(seen)
        >= (rules.steady_at_least if len(seen) >= rules.sieve_trials else rules.few_at_least)
        for seen in tasks.values()
    ]


def _none_passes(hidden: Sequence[Trial], shown: Sequence[Trial], rules: Judge) -> Refusal | None:
    """The rule of earlier versions, by which verdicts on record were reached."""
    tasks = {trial.task_id for trial in hidden}
    if len(tasks) < rules.hidden_tasks_min or any(_passed(trial) for trial in hidden):
        return None
    passed = [_passed(trial) for trial in shown]
    if not passed or (1 - sum(passed) / len(passed)) ** len(tasks) > rules.beta:
        return None
    return Refusal(
        RefusalKind.OVER_FITTED,
        f"{sum(passed)} of {len(passed)} trials of the evidence pass with it, and none of {len(tasks)} hidden "
        "tasks that fail alike: it fits the tasks that were shown, not what they have in common",
    )


def _passed(trial: Trial) -> bool:
    return trial.outcome.result is Result.PASSED
