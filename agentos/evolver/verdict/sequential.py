"""Bets against a claim about a mean: how sure noisy trials make one, at whatever moment one looks.

A test that may be looked at after every trial needs other arithmetic than one that is looked at once.
Here it is a game (Ville 1939; Waudby-Smith and Ramdas, "Estimating means of bounded random variables by
betting", JRSS B 86, 2024): we start with 1 and bet at each trial against the claim "the mean is at most
m". If the claim is true no way of betting makes the expected fortune grow, so the chance that it *ever*
reaches 1/alpha is at most alpha, however often one looks and whenever one stops. The fortune is the
*e-value*; this module knows its logarithm and nothing of what is tested.

The stakes are fixed beforehand (a mixture over ``STAKES``), so the e-value depends on the counts alone,
not on their order. Fixed stakes also make a fixed list of tasks, each with its own mean, a fair sample:
for independent trials the expected factor of a complete round is the product of ``1 + stake * (mean_i - m)``,
and by the inequality of the arithmetic and geometric means that is at most 1 when the *average* of the
means is at most m. Hence e-values are taken at complete rounds only (``tally``).

Whoever tries twenty edits that do nothing finds one that looks good. So all candidates of one failure share one
allowance (``threshold``): the k-th gets 1/(k(k+1)) of it, which sums to 1 for any number of candidates, also those of
a later evolution. docs/decisions/sequential-judge.md says why not otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

# A trial of the same task on both sides: passed on the base, passed with the candidate.
Pair = tuple[bool, bool]

# Share of the largest stake that cannot lose more than everything, and its part of the first fortune. A
# quarter more stands on the boldest, which is the best where nothing contradicts; the rest loses little to
# the best stake in hindsight.
STAKES = tuple((step / 16, 0.75 / 16 + (0.25 if step == 16 else 0.0)) for step in range(1, 17))

_FIRST = tuple(math.log(part) for _, part in STAKES)

FAR = 100_000  # trials; what needs more is called out of reach


@dataclass(frozen=True, slots=True)
class PairTally:
    """Pairs in which the candidate did better than the base, as well, and worse."""

    wins: float = 0
    ties: float = 0
    losses: float = 0

    @property
    def pairs(self) -> float:
        return self.wins + self.ties + self.losses

    def mirrored(self) -> PairTally:
        """Base and candidate exchanged."""
        return PairTally(self.losses, self.ties, self.wins)


def complete_rounds(tasks: Mapping[str, Sequence[Pair]]) -> int:
    """How often every task was tried; 0 without tasks."""
    return min((len(pairs) for pairs in tasks.values()), default=0)


def tally(tasks: Mapping[str, Sequence[Pair]]) -> PairTally:
    """Counts over complete rounds. Pairs beyond them are left out: a round counts whole or not at all."""
    rounds = complete_rounds(tasks)
    counted = [after - before for pairs in tasks.values() for before, after in pairs[:rounds]]
    return PairTally(counted.count(1), counted.count(0), counted.count(-1))


def log_e(seen: Sequence[tuple[float, float]], *, at_most: float, low: float) -> float:
    """Logarithm of the e-value against "the mean is at most ``at_most``".

    ``seen`` holds values and how often each was seen; no value is below ``low``, which is below ``at_most``.
    """
    logs = list(_FIRST)
    for value, count in seen:
        if count:
            factors = _log_factors(value, at_most, low)
            logs = [log + count * factor for log, factor in zip(logs, factors, strict=True)]
    top = max(logs)
    return top + math.log(sum(math.exp(log - top) for log in logs)) if top > -math.inf else top


@lru_cache(maxsize=256)
def _log_factors(value: float, at_most: float, low: float) -> tuple[float, ...]:
    """By what one such value multiplies the fortune, for each stake; the boldest loses all at ``low``."""
    gains = (1 + share * (value - at_most) / (at_most - low) for share, _ in STAKES)
    return tuple(math.log(gain) if gain > 1e-12 else -math.inf for gain in gains)


@lru_cache(maxsize=4096)
def log_e_above(found: PairTally, mean: float) -> float:
    """For "the candidate's mean advantage is above ``mean``", against at most it; -1 < mean < 1."""
    seen = ((1.0, found.wins), (0.0, found.ties), (-1.0, found.losses))
    return log_e(seen, at_most=mean, low=-1.0)


def log_e_below(found: PairTally, mean: float) -> float:
    """For "the candidate's mean advantage is below ``mean``", against at least it; -1 < mean < 1."""
    return log_e_above(found.mirrored(), -mean)


def log_e_rarer(hits: float, misses: float, share: float) -> float:
    """For "hits are rarer than ``share``", against at least as frequent; 0 < share < 1."""
    return log_e(((1.0, misses), (0.0, hits)), at_most=1 - share, low=0.0)


def log_e_oftener(hits: float, misses: float, share: float) -> float:
    """For "hits are more frequent than ``share``", against at most as frequent; 0 < share < 1."""
    return log_e(((1.0, hits), (0.0, misses)), at_most=share, low=0.0)


def threshold(alpha: float, number: int) -> float:
    """The log e-value that the candidate of this number (from 1) must reach; never passed by chance with more than its share of ``alpha``."""
    if number < 1:
        raise ValueError(f"candidates are numbered from 1, not {number}")
    return math.log(number * (number + 1) / alpha)
