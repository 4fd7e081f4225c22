"""Scores, as pure functions: BM25 over weighted columns, and how two rankings become one.

Statistics are taken over the entries of the snapshot alone, not over the whole index (as FTS5's own
``bm25()`` would): a goal and a snapshot have to give the same bundle today and in a replay, however
many other versions were indexed in between.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

COLUMNS = ("name", "description", "body")


@dataclass(frozen=True, slots=True)
class Weights:
    """BM25F (Robertson and Zaragoza 2009, section 3.6). Chosen on the dev half of benchmarks/data."""

    columns: tuple[float, float, float] = (2.0, 1.5, 1.0)
    b: tuple[float, float, float] = (0.3, 0.5, 0.75)  # how much a long column counts less
    k1: float = 2.0  # how soon a repeated word adds nothing more


@dataclass(frozen=True, slots=True)
class Occurrences:
    """In which entries one word stands, each time it does: (entry, column)."""

    places: Sequence[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The entries that a search ranks: entry -> how many words each column has."""

    lengths: Mapping[int, tuple[int, int, int]]
    means: tuple[float, float, float]

    @classmethod
    def of(cls, lengths: Mapping[int, tuple[int, int, int]]) -> SearchScope:
        """With the mean length of each column, at least 1."""
        count = max(len(lengths), 1)
        first, second, third = (sum(item[i] for item in lengths.values()) / count for i in range(3))
        return cls(lengths, (max(first, 1.0), max(second, 1.0), max(third, 1.0)))


def bm25(scope: SearchScope, terms: Iterable[Occurrences], weights: Weights) -> dict[int, float]:
    """Entry -> score, of those where a term stands. The order of the terms decides the last digit."""
    scores: dict[int, float] = {}
    for term in terms:
        found: dict[int, float] = {}
        for entry, column in term.places:
            if entry in scope.lengths:
                number = COLUMNS.index(column)
                b = weights.b[number]
                length = scope.lengths[entry][number] / scope.means[number]
                found[entry] = found.get(entry, 0.0) + weights.columns[number] / (1 - b + b * length)
        rarity = math.log(1 + (len(scope.lengths) - len(found) + 0.5) / (len(found) + 0.5))
        for entry, often in found.items():
            scores[entry] = scores.get(entry, 0.0) + rarity * often * (weights.k1 + 1) / (often + weights.k1)
    return scores


def fused(rankings: Iterable[tuple[float, Sequence[str]]], k: int = 10) -> dict[str, float]:
    """Reciprocal rank fusion (Cormack, Clarke and Buettcher 2009) of weighted rankings: name -> score."""
    scores: dict[str, float] = {}
    for weight, ranking in rankings:
        for place, name in enumerate(ranking, start=1):
            scores[name] = scores.get(name, 0.0) + weight / (k + place)
    return scores


def best_first(scores: Mapping[str, float]) -> list[str]:
    """Names by score; equal ones by name, so that the order is the same every time."""
    return sorted(scores, key=lambda name: (-round(scores[name], 9), name))
