"""What an exception says: its type, its message and the line at which it left the file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentos.proposers.repair.reading.clues import Clue

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


# by exception: factor, operators, tokens, whether only where it was raised
PLAIN: dict[str, tuple[tuple[float, frozenset[str], frozenset[str], bool], ...]] = {
    "IndexError": ((4.0, BOUNDS | GUARDS, frozenset({"len", "partition"}), True),),
    "StopIteration": ((4.0, BOUNDS | GUARDS, frozenset({"None"}), True),),
    "ZeroDivisionError": (
        (6.0, GUARDS, frozenset({"max", "or"}), True),
        (2.0, GUARDS, frozenset({"=="}), False),
    ),
    "UnicodeDecodeError": (
        (12.0, frozenset({"encoding"}), frozenset({"encoding", "errors", "utf", "latin"}), False),
    ),
    "TypeError": ((6.0, frozenset({"wrap", "argument", "argument dropped", "order"}), CONVERSIONS, True),),
    **dict.fromkeys(
        ("AttributeError", "NameError", "UnboundLocalError"),
        (
            (
                5.0,
                frozenset({"attribute", "name", "function", "statement inserted", "wrap"}),
                frozenset(),
                True,
            ),
        ),
    ),
    "timeout": (
        (3.0, frozenset({"statement inserted", "statement moved out", "assignment"}), frozenset(), False),
    ),
}


def clues_of_error(kind: str, message: str, line: int) -> Iterator[Clue]:
    """What speaks for which edits when a call ended with this error at this line (0: unknown)."""
    here = frozenset({line}) if line else frozenset()
    name = kind.rpartition(".")[2]
    if "None" in message and name in ("TypeError", "AttributeError"):
        yield Clue(8.0, GUARDS, frozenset({"None", "or"}), here)
        yield Clue(3.0, GUARDS, frozenset({"None"}))
    elif name == "KeyError":
        yield from _of_key(message, here)
    elif "empty" in message:
        yield Clue(10.0, GUARDS, frozenset({"default"}), here)
    elif name in PLAIN:
        for factor, operators, tokens, near in PLAIN[name]:
            yield Clue(factor, operators, tokens, here if near else frozenset())
    elif name in ("ValueError", "InvalidOperation", "load") or any(text in message for text in _NUMBER):
        yield from _of_value(message, here)


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
