"""What an exception says: its type, its message and the line at which it left the file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentos.evolver.proposers.repair.reading.clues import Clue

GUARDS = frozenset({"guard", "way out", "default", "condition added", "presence"})
BOUNDS = frozenset({"off by one", "slice", "constant", "argument", "comparison operator", "padded"})
CONVERSIONS = frozenset({"int", "float", "str", "Decimal", "list", "len", "sum"})
CLEANED = frozenset(
    {"strip", "replace", "lstrip", "rstrip", "split", "float", "removeprefix", "removesuffix", "or"}
)
_NUMBER = (
    "could not convert",
    "invalid literal",
    "Invalid isoformat",
    "does not match format",
    "ConversionSyntax",
)


def clues_of_error(kind: str, message: str, line: int) -> Iterator[Clue]:
    """What speaks for which edits when a call ended with this error at this line (0: unknown)."""
    here = frozenset({line}) if line else frozenset()
    name = kind.rpartition(".")[2]
    if "None" in message and name in ("TypeError", "AttributeError"):
        yield Clue(8.0, GUARDS, frozenset({"None", "or"}), here)
        yield Clue(3.0, GUARDS, frozenset({"None"}))
    elif name == "KeyError":
        yield from _of_key(message, here)
    elif name in ("IndexError", "StopIteration"):
        yield Clue(4.0, BOUNDS | GUARDS, frozenset({"len", "partition"}), here)
    elif name == "ZeroDivisionError":
        yield Clue(6.0, GUARDS, frozenset({"max", "or"}), here)
        yield Clue(2.0, GUARDS, frozenset({"=="}))
    elif name == "UnicodeDecodeError" or "BOM" in message:
        yield Clue(12.0, frozenset({"encoding"}), frozenset({"encoding", "errors", "utf", "latin"}))
    elif "empty" in message or "no median" in message:
        yield Clue(10.0, GUARDS, frozenset({"default"}), here)
    elif name in ("ValueError", "InvalidOperation", "load") or any(text in message for text in _NUMBER):
        yield from _of_value(message, here)
    elif name == "TypeError":
        yield Clue(6.0, frozenset({"wrap", "argument", "argument dropped", "order"}), CONVERSIONS, here)
    elif name in ("AttributeError", "NameError", "UnboundLocalError"):
        yield Clue(
            5.0, frozenset({"attribute", "name", "function", "statement inserted", "wrap"}), lines=here
        )
    elif name == "timeout":
        yield Clue(
            3.0, frozenset({"statement inserted", "statement moved out", "comparison operator", "assignment"})
        )


def _of_key(message: str, here: frozenset[int]) -> Iterator[Clue]:
    yield Clue(6.0, frozenset({"default", "presence", "accumulated"}), frozenset({"get", "setdefault"}), here)
    yield Clue(
        3.0, GUARDS | {"constant", "method", "field"}, frozenset({"in", "strip", "lower", "upper"}), here
    )
    key = message.strip("'\" ")
    if key != key.strip() or key.startswith("\\ufeff"):
        yield Clue(4.0, frozenset({"encoding"}), frozenset({"strip", "sig"}))
    if key.casefold() != key:
        yield Clue(3.0, tokens=frozenset({"lower", "casefold", "upper"}))


def _of_value(message: str, here: frozenset[int]) -> Iterator[Clue]:
    yield Clue(4.0, GUARDS | {"constant", "template of time"}, CLEANED, here)
    if "unpack" in message:
        yield Clue(
            6.0,
            frozenset({"argument", "constant", "keyword"}),
            frozenset({"partition", "maxsplit", "1"}),
            here,
        )
    if match := re.search(r": b?'(.*)'", message):
        text = match.group(1)
        if text.strip() == "":
            yield Clue(4.0, GUARDS, frozenset({"or", "not"}))
        if re.search(r"\d[.]\d", text):
            yield Clue(4.0, tokens=frozenset({"float", "Decimal"}))
        if "," in text:
            yield Clue(4.0, frozenset({"cleaned"}))
