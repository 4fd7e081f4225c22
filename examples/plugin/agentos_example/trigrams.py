"""Retriever: shares of three letters in a row, which finds what is misspelt."""

from __future__ import annotations

from collections.abc import Sequence


def scores(query: str, texts: Sequence[str]) -> list[float]:
    """One number for each text, 0 where it has nothing in common with the query; the same for the same, always."""
    wanted = _grams(query)
    return [len(wanted & found) / (len(wanted | found) or 1) for found in map(_grams, texts)]


def _grams(text: str) -> frozenset[str]:
    plain = f" {' '.join(text.lower().split())} "
    return frozenset(plain[start : start + 3] for start in range(len(plain) - 2))
