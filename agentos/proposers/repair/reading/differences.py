"""What a wrong answer says beside the right one: by how much, and in which way it is wrong.

Only the *way* is used, to order edits. No expected value ever becomes part of an edit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from agentos.domain import canonical
from agentos.proposers.repair.reading.clues import Clue

FACTORS = (2, 7, 10, 12, 16, 24, 28, 30, 60, 100, 365, 1000, 1024, 3600, 86_400)
BOUNDARY = frozenset({"off by one", "comparison operator", "slice", "constant", "argument", "keyword"})
SELECTION = frozenset({"comparison operator", "boolean operator", "operand dropped", "condition added", "filter",
                       "condition dropped", "negation", "guard", "way out", "pattern", "statement inserted"})  # fmt: skip
ORDER = frozenset({"sort key", "order", "statements exchanged", "keyword"})
LIMITED = frozenset({"limited"})


def clues_of_difference(want: Any, got: Any) -> Iterator[Clue]:
    """What speaks for which edits when this was expected and that was answered."""
    if isinstance(want, bool) or isinstance(got, bool):
        yield Clue(2.0, SELECTION)
    elif isinstance(want, int | float) and isinstance(got, int | float):
        yield from _of_numbers(float(want), float(got))
    elif isinstance(want, str) and isinstance(got, str):
        yield from _of_texts(want, got)
    elif isinstance(want, list) and isinstance(got, list):
        yield from _of_lists(want, got)
    elif isinstance(want, Mapping) and isinstance(got, Mapping):
        yield from _of_mappings(want, got)
    elif want is None or got is None:
        yield Clue(
            2.0, frozenset({"default", "guard", "way out", "presence", "result"}), frozenset({"None", "or"})
        )
    elif isinstance(want, str) != isinstance(got, str):
        yield Clue(4.0, tokens=frozenset({"str", "int", "float"}))


def _of_numbers(want: float, got: float) -> Iterator[Clue]:
    apart = want - got
    if abs(apart) == 1:
        yield Clue(2.0, BOUNDARY)
    if want == -got:
        yield Clue(
            5.0, frozenset({"sign", "order", "names exchanged", "operands swapped"}), frozenset({"abs"})
        )
    if any(round(got, digits) == want for digits in range(5)):
        yield Clue(8.0, frozenset({"rounding"}), frozenset({"round"}))
    elif abs(apart) < 1 and abs(apart) <= 0.02 * abs(want):
        yield Clue(
            4.0, frozenset({"rounding"}), frozenset({"round", "//", "/", "floor", "ceil", "int", "Decimal"})
        )
    if want and got and any(_about(want / got, f) or _about(got / want, f) for f in FACTORS):
        yield Clue(3.0, frozenset({"factor", "constant", "unit"}), frozenset({"*", "/"}))
    if apart < 0:
        yield Clue(1.3, LIMITED, frozenset({"min"}))
    else:
        yield Clue(1.3, LIMITED | {"accumulated"}, frozenset({"max"}))


def _about(one: float, other: float) -> bool:
    return abs(one - other) < 0.01 * other


def _of_texts(want: str, got: str) -> Iterator[Clue]:
    if "".join(want.split()) == "".join(got.split()):
        yield Clue(6.0, frozenset({"template"}), frozenset({"strip", "rstrip", "lstrip", "split", "join"}))
    elif want.casefold() == got.casefold():
        yield Clue(6.0, tokens=frozenset({"lower", "upper", "title", "capitalize", "casefold"}))
    elif want[::-1] == got or sorted(want) == sorted(got):
        yield Clue(3.0, ORDER, frozenset({"sorted", "reversed"}))
    elif got and (got in want or want in got):
        yield Clue(2.0, BOUNDARY | {"pattern", "template"}, frozenset({"strip", "removeprefix", "split"}))
    digits = [character for character in want if character.isdigit()]
    if digits and digits != [character for character in got if character.isdigit()]:
        yield Clue(1.5, frozenset({"template", "template of time", "unit", "rounding"}))


def _of_lists(want: list[Any], got: list[Any]) -> Iterator[Clue]:
    expected, found = (Counter(canonical(item) for item in items) for items in (want, got))
    if expected == found:
        yield Clue(8.0, ORDER, frozenset({"sorted", "sort", "reverse", "reversed", "key"}))
    elif expected.keys() == found.keys():
        yield Clue(4.0, frozenset({"condition added"}), frozenset({"set", "fromkeys"}))
    elif expected <= found or found <= expected:
        yield Clue(2.0, SELECTION | BOUNDARY)
    elif len(want) == len(got) and len(want) <= 50:
        seen = next((pair for pair in zip(want, got, strict=True) if pair[0] != pair[1]), None)
        if seen is not None:
            yield from clues_of_difference(*seen)


def _of_mappings(want: Mapping[str, Any], got: Mapping[str, Any]) -> Iterator[Clue]:
    if want.keys() == got.keys():
        seen = next((key for key in want if want[key] != got[key]), None)
        if seen is not None:
            yield from clues_of_difference(want[seen], got[seen])
    elif {str(key).strip().casefold() for key in want} == {str(key).strip().casefold() for key in got}:
        yield Clue(5.0, tokens=frozenset({"strip", "lower", "upper", "casefold", "title"}))
    else:
        yield Clue(2.0, SELECTION, frozenset({"lower", "strip"}))
