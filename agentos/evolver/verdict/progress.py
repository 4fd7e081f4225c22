"""How the sequential tests of a candidate went, round by round: for a person to look at, computed from the trials.

A verdict looks at the last round only; that it may look at any is what the test is made for (``sequential``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentos.domain import Trial, TrialSet
from agentos.evolver.policy import Judge
from agentos.evolver.verdict.paired_tests import MeasuredSet, Rule, claims_of
from agentos.evolver.verdict.pairing import measured_sets, rule_of
from agentos.evolver.verdict.sequential import complete_rounds, tally

LEAST = math.log(1e-6)  # an e-value may be 0, of which there is no logarithm to be drawn


@dataclass(frozen=True, slots=True)
class RoundEvidence:
    """After a round: how many pairs there are, and the logarithms of the e-values for the edit and against it."""

    pairs: int
    log_for: float
    log_against: float


@dataclass(frozen=True, slots=True)
class TestCourse:
    """One set's test. It is over when ``log_for`` reaches ``needed_for``, or ``log_against`` ``needed_against``."""

    which: TrialSet
    tasks: int
    rounds: Sequence[RoundEvidence]  # from none to all that are complete
    needed_for: float
    needed_against: float


def progress_of(trials: Sequence[Trial], rules: Judge) -> list[TestCourse]:
    """Of each set with fresh pairs; nothing where every flip counts. ``trials``: as the candidate was judged by."""
    found = measured_sets(trials, rules)
    return [_progress(which, each, rule_of(rules)) for which, each in found.items() if each.tasks]


def _progress(which: TrialSet, measured: MeasuredSet, rule: Rule) -> TestCourse:
    shown, refuted = claims_of(which, measured.number, rule, measured.share)

    def rounds() -> Iterator[RoundEvidence]:
        for many in range(complete_rounds(measured.tasks) + 1):
            counts = tally({task: pairs[:many] for task, pairs in measured.tasks.items()})
            values = (max(claim.log_e(counts), LEAST) for claim in (shown, refuted))
            yield RoundEvidence(int(counts.pairs), *values)

    return TestCourse(which, len(measured.tasks), list(rounds()), shown.needed, refuted.needed)
