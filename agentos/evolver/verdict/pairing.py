"""The fresh pairs of a candidate, read out of its trials, and what they say together.

A task that *varies* was tried afresh on both sides; its pair of number r are the two trials of repeat r.
The repeats below ``FIRST`` are those by which the task was chosen (``steadiness``): they are in no pair.
Everything here is a function of trials and rules, so that a verdict can be computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentos.domain import Arm, Result, Trial, TrialSet
from agentos.evolver.policy import Judge
from agentos.evolver.verdict.flakiness import EVIDENCE_AT_MOST, STEADY_AT_LEAST, TRIALS
from agentos.evolver.verdict.paired_tests import (
    Beside,
    Measured,
    Rule,
    Ruling,
    Spending,
    broken_tasks,
    decide,
)
from agentos.evolver.verdict.sequential import Pair

FIRST = TRIALS  # repeat of a task's first pair
# Differences that say nothing: a reply a little longer, a machine a little busier.
_SLACK = {"usd": 0.001, "tokens": 200.0, "seconds": 5.0}


@dataclass(frozen=True, slots=True)
class Changed:
    """Varying tasks by what became of them, as a verdict names them."""

    fixed: tuple[str, ...]  # evidence that is now passed as steadily as a guard
    broken: tuple[str, ...]
    flaky: tuple[str, ...]  # passed at one time and failed at another, on one side


def varying(trials: Iterable[Trial]) -> frozenset[str]:
    """The tasks of which a candidate has fresh pairs."""
    return frozenset(trial.task_id for trial in trials if trial.number)


def rule_on(
    trials: Sequence[Trial], rules: Judge, beside: Beside, untried: Mapping[TrialSet, Sequence[str]]
) -> Ruling:
    """What the fresh pairs among these trials say; ``untried`` names tasks that are to have some."""
    pairs, varies = _pairs(trials), varying(trials)
    measured = {which: _measured(pairs, which, untried.get(which, ())) for which in TrialSet}
    spent = sum(trial.outcome.cost.usd or 0.0 for trial in trials if trial.task_id in varies)
    return decide(measured, _rule(rules), spending=_spending(pairs), spent_usd=spent, beside=beside)


def changed(trials: Sequence[Trial], rules: Judge) -> Changed:
    """Which tasks became better, broke, or vary."""
    pairs = _pairs(trials)
    fixed, flaky = [], []
    broken: list[str] = []
    for which in TrialSet:
        outcomes = _outcomes(pairs, which)
        broken += broken_tasks(outcomes, _rule(rules))
        for task_id, seen in outcomes.items():
            before, after = ([side[index] for side in seen] for index in (0, 1))
            if which is TrialSet.EVIDENCE and _rate(before) <= EVIDENCE_AT_MOST:
                fixed += [task_id] if _rate(after) >= STEADY_AT_LEAST else []
            flaky += [task_id] if len(set(before)) == 2 or len(set(after)) == 2 else []
    return Changed(tuple(fixed), tuple(broken), tuple(flaky))


def _rate(passed: Sequence[bool]) -> float:
    return sum(passed) / len(passed)


def _pairs(trials: Sequence[Trial]) -> dict[str, list[tuple[Trial, Trial]]]:
    """Base and candidate by task, in the order of their repeats, up to the first that is not there."""
    sides: dict[str, dict[tuple[Arm, int], Trial]] = {task_id: {} for task_id in sorted(varying(trials))}
    for trial in trials:
        if trial.task_id in sides:
            sides[trial.task_id][trial.arm, trial.repeat] = trial
    found: dict[str, list[tuple[Trial, Trial]]] = {}
    for task_id, side in sides.items():
        pairs = found.setdefault(task_id, [])
        while True:
            repeat = FIRST + len(pairs)
            base, own = side.get((Arm.BASE, repeat)), side.get((Arm.CANDIDATE, repeat))
            if base is None or own is None:
                break
            pairs.append((base, own))
    return found


def _measured(
    pairs: Mapping[str, Sequence[tuple[Trial, Trial]]], which: TrialSet, untried: Sequence[str]
) -> Measured:
    found: dict[str, list[Pair]] = {task_id: [] for task_id in untried}
    found |= _outcomes(pairs, which)
    numbers = [own.number for seen in pairs.values() for _, own in seen if own.set is which]
    return Measured(found, max(numbers, default=1))


def _outcomes(pairs: Mapping[str, Sequence[tuple[Trial, Trial]]], which: TrialSet) -> dict[str, list[Pair]]:
    return {
        task_id: [_outcome(base, own) for base, own in seen]
        for task_id, seen in pairs.items()
        if seen and seen[0][1].set is which
    }


def _outcome(base: Trial, own: Trial) -> Pair:
    """What cannot be replayed on the base is no difference; on the candidate alone it is no success.

    Otherwise an edit would get past a guard by making it impossible to measure.
    """
    if base.outcome.result is Result.NOT_REPLAYABLE:
        return (False, False)
    return _passed(base), _passed(own)


def _passed(trial: Trial) -> bool:
    return trial.outcome.result is Result.PASSED


def _spending(pairs: Mapping[str, Sequence[tuple[Trial, Trial]]]) -> list[Spending]:
    """Of guards and hold-out where both sides pass: a run that fails at once is cheap for no good reason."""
    seen = [pair for own in pairs.values() for pair in own if pair[1].set is not TrialSet.EVIDENCE]
    if not seen:
        return []
    both = [(base.outcome.cost, own.outcome.cost) for base, own in seen if _passed(base) and _passed(own)]
    units: dict[str, list[tuple[float, float]]] = {
        "usd": [(base.usd, own.usd) for base, own in both if base.usd is not None and own.usd is not None],
        "tokens": [(base.tokens, own.tokens) for base, own in both],
        "seconds": [(base.wall_s, own.wall_s) for base, own in both],
    }
    if both and not units["usd"]:
        del units["usd"]  # the price of a model is not known
    return [Spending(unit, found, _SLACK[unit]) for unit, found in units.items()]


def _rule(rules: Judge) -> Rule:
    return Rule(
        alpha=rules.alpha,
        beta=rules.beta,
        min_effect=rules.min_effect,
        margin=rules.margin,
        max_ratio=rules.max_ratio,
        dear_share=rules.dear_share,
        min_rounds=rules.min_rounds,
        max_pairs=rules.max_pairs,
        max_usd=rules.max_usd,
        min_tasks=rules.min_tasks,
    )
