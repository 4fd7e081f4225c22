"""How the error that one evidence may cost is divided among the candidates tried on it.

Whoever tries twenty edits that do nothing finds one that looks good. So all candidates of one evidence
share one allowance: the k-th gets 1/(k(k+1)) of it, which sums to 1 for any number of candidates, also
those of a later evolution on the same evidence. docs/decisions/sequential-judge.md says why not otherwise.
"""

from __future__ import annotations

import math


def threshold(alpha: float, number: int) -> float:
    """The log e-value that the candidate of this number (from 1) must reach; never passed by chance with more than its share of ``alpha``."""
    if number < 1:
        raise ValueError(f"candidates are numbered from 1, not {number}")
    return math.log(number * (number + 1) / alpha)
