"""Scores, as pure functions: BM25 over weighted columns, coverage of the whole text, and how rankings become one.

Statistics are taken over the entries of the snapshot alone, not over the whole index (as FTS5's own
``bm25()`` would): a goal and a snapshot have to give the same bundle today and in a replay, however
many other versions were indexed in between.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

COLUMNS = ("name", "description", "headings")
HEAD = "\0"  # the passage that the columns are


@dataclass(frozen=True, slots=True)
class Weights:
    """BM25F (Robertson and Zaragoza 2009, section 3.6). Chosen on the first halves of both sources (docs/use/retrieval.md)."""

    columns: tuple[float, float, float] = (2.0, 1.5, 1.0)
    coverage: float = 0.6  # of a text that holds all words of the query, where the best BM25 has 1
    together: float = 1.5  # of the passage that holds most of them
    mentions: float = 2.0  # of the text whose passages hold them most often
    meaning: float = 1.5  # of the nearest vector
    b: tuple[float, float, float] = (0.3, 0.5, 0.75)  # how much a long column counts less
    k1: float = 2.0  # how soon a repeated word adds nothing more


@dataclass(frozen=True, slots=True)
class Occurrences:
    """In which entries one word stands, each time it does: (entry, column)."""

    places: Sequence[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The entries that a search ranks: column -> entry -> what a word there is worth."""

    worth: Mapping[str, Mapping[int, float]]
    entries: Sequence[int]

    @classmethod
    def of(cls, lengths: Mapping[int, tuple[int, int, int]], weights: Weights) -> SearchScope:
        """``lengths`` is entry -> how many words each column has."""
        worth: dict[str, dict[int, float]] = {}
        for number, column in enumerate(COLUMNS):
            mean = max(1.0, sum(item[number] for item in lengths.values()) / max(len(lengths), 1))
            weight, b = weights.columns[number], weights.b[number]
            worth[column] = {
                entry: weight / (1 - b + b * item[number] / mean) for entry, item in lengths.items()
            }
        return cls(worth, [*lengths])


@dataclass(frozen=True, slots=True)
class TermScores:
    """What one term of the query is worth: entry -> weighted count, of those where it stands."""

    rarity: float
    often: Mapping[int, float]


def bm25(scope: SearchScope, terms: Iterable[Occurrences]) -> list[TermScores]:
    """The terms by themselves; ``total`` sums them up."""
    found = []
    for term in terms:
        often: dict[int, float] = {}
        for entry, column in term.places:
            if (worth := scope.worth[column].get(entry)) is not None:
                often[entry] = often.get(entry, 0.0) + worth
        found.append(TermScores(rarity(len(scope.entries), len(often)), often))
    return found


def total(terms: Iterable[TermScores], k1: float) -> dict[int, float]:
    """Entry -> score, of those where a term stands. The order of the terms decides the last digit."""
    scores: dict[int, float] = {}
    for term in terms:
        for entry, often in term.often.items():
            scores[entry] = scores.get(entry, 0.0) + term.rarity * often * (k1 + 1) / (often + k1)
    return scores


def rarity(entries: int, found: int) -> float:
    """What a term is worth that stands in ``found`` of so many entries."""
    return math.log(1 + (entries - found + 0.5) / (found + 0.5))


# Of the three that follow: stem -> rarity, in the order in which they are added; entry -> stem -> the passages that hold
# it, a character each. A rare stem is a larger part of the query.


def coverage(rarities: Mapping[str, float], places: Mapping[int, Mapping[str, str]]) -> dict[int, float]:
    """Entry -> the part of the query that stands anywhere in its text, however long that is."""
    return {entry: sum(rarities[stem] for stem in rarities if stem in held) for entry, held in places.items()}


def nearest_together(
    rarities: Mapping[str, float], places: Mapping[int, Mapping[str, str]]
) -> dict[int, float]:
    """Entry -> the part of the query that stands in the one passage with most of it."""
    best: dict[int, float] = {}
    for entry, held in places.items():
        in_passage: dict[str, float] = {}
        for stem in rarities:
            for passage in held.get(stem, ""):
                in_passage[passage] = in_passage.get(passage, 0.0) + rarities[stem]
        best[entry] = max(in_passage.values(), default=0.0)
    return best


def mentions(rarities: Mapping[str, float], places: Mapping[int, Mapping[str, str]]) -> dict[int, float]:
    """Entry -> in how many passages the stems stand, each further one telling less."""
    return {
        entry: sum(rarities[stem] * math.log1p(len(held[stem])) for stem in rarities if stem in held)
        for entry, held in places.items()
    }


def blended(rankings: Sequence[tuple[float, Mapping[int, float]]]) -> dict[int, float]:
    """Weighted sum of scores, each ranking's taken in shares of its best one: name -> score."""
    scores: dict[int, float] = {}
    for weight, ranking in rankings:
        best = max(ranking.values(), default=0.0)
        for name, score in ranking.items():
            if best > 0 and score > 0:
                scores[name] = scores.get(name, 0.0) + weight * score / best
    return scores


def best_first(scores: Mapping[str, float]) -> list[str]:
    """Names by score; equal ones by name, so that the order is the same every time."""
    return sorted(scores, key=lambda name: (-round(scores[name], 9), name))


def leading(scores: Mapping[int, float], depth: int, name: Callable[[int], str]) -> list[int]:
    """The ``depth`` best entries as ``best_first`` would have them, without naming all the others."""
    if len(scores) > depth:
        least = heapq.nlargest(depth, scores.values())[-1] - 1e-8
        scores = {entry: score for entry, score in scores.items() if score >= least}
    return sorted(scores, key=lambda entry: (-round(scores[entry], 9), name(entry)))[:depth]
