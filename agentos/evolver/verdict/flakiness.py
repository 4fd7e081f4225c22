"""How steadily a task passes on the base, measured before it serves as evidence or guard.

Measuring saves trials, it is no part of any proof: the paired tests are right for tasks however flaky, but
a guard that fails by itself needs many pairs and evidence that mostly passes has little to gain. Because
a task is chosen by these trials, they must not be paired afterwards: among tasks that failed four times
are some that were unlucky, and those pass oftener next time with any candidate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agentos.domain import TrialSet
from agentos.evolver.policy import Judge
from agentos.evolver.verdict.multiplicity import threshold


def log_luck(tasks: int, fixed: int, repeats: int) -> float:
    """Logarithm of a bound for the chance that an edit that makes no task better seems to fix so many of these.

    A task seems fixed that failed ``repeats`` times on the base and passed as often with the candidate. Where it
    passes with chance p on the base, and no oftener with the candidate, that has a chance of at most
    ((1-p)p)^repeats <= 4^-repeats. Any ``fixed`` of the ``tasks`` may be the ones, and any number of them (union
    bound), so it does not matter that tasks were chosen by these very trials, as long as ``tasks`` counts those that
    were left out as well.
    """
    return math.log(tasks * math.comb(tasks, fixed)) - fixed * repeats * math.log(4)


def repeats_needed(tasks: int, fixed: int, number: int, rules: Judge) -> int:
    """Trials on each side after which so many fixed tasks are no luck, for the failure's candidate of this number."""
    may = -threshold(rules.alpha * rules.steady_share, number)
    return max(1, math.ceil((log_luck(tasks, fixed, 0) - may) / (fixed * math.log(4))))


@dataclass(frozen=True, slots=True)
class Screening:
    """``serves`` is None until ``further`` more trials were made."""

    serves: bool | None
    says: str
    further: int = 0


def fitness(passed: Sequence[bool], which: TrialSet, rules: Judge) -> Screening:
    """Can a task with these fresh trials on the base serve in this set?"""
    if len(passed) < rules.sieve_trials:
        missing = rules.sieve_trials - len(passed)
        return Screening(None, f"{missing} more fresh trials on the base are needed", missing)
    rate = sum(passed) / len(passed)
    seen = f"it passed {sum(passed)} of {len(passed)} trials on the base"
    if which is TrialSet.EVIDENCE:
        serves, limit = rate <= rules.evidence_at_most, f"at most {rules.evidence_at_most:.0%} are"
    else:
        serves, limit = rate >= rules.steady_at_least, f"at least {rules.steady_at_least:.0%} are"
    return Screening(serves, seen if serves else f"{seen}, {limit} needed for {which.value}")
