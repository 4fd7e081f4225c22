"""How steadily a task passes on the base, measured before it serves as evidence or guard.

Measuring saves trials, it is no part of any proof: the paired tests are right for tasks however flaky, but
a guard that fails by itself needs many pairs and evidence that mostly passes has little to gain. Because
a task is chosen by these trials, they must not be paired afterwards: among tasks that failed four times
are some that were unlucky, and those pass oftener next time with any candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentos.domain import TrialSet

TRIALS = 4  # fresh ones on the base
EVIDENCE_AT_MOST = 0.5  # passed of them: at least half remains to be gained
STEADY_AT_LEAST = 0.75  # passed of them, for a guard or in the hold-out


@dataclass(frozen=True, slots=True)
class Fitness:
    """``serves`` is None until ``further`` more trials were made."""

    serves: bool | None
    says: str
    further: int = 0


def fitness(passed: Sequence[bool], which: TrialSet) -> Fitness:
    """Can a task with these fresh trials on the base serve in this set?"""
    if len(passed) < TRIALS:
        missing = TRIALS - len(passed)
        return Fitness(None, f"{missing} more fresh trials on the base are needed", missing)
    rate = sum(passed) / len(passed)
    seen = f"it passed {sum(passed)} of {len(passed)} trials on the base"
    if which is TrialSet.EVIDENCE:
        serves, limit = rate <= EVIDENCE_AT_MOST, f"at most {EVIDENCE_AT_MOST:.0%} are"
    else:
        serves, limit = rate >= STEADY_AT_LEAST, f"at least {STEADY_AT_LEAST:.0%} are"
    return Fitness(serves, seen if serves else f"{seen}, {limit} needed for {which.value}")
