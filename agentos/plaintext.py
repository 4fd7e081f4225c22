"""Text that a sandbox, a model or a file wrote, made safe to show; and records as JSON. Standard library only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Any

# All control characters but line feed and tab, what overrides the direction of text, halves of characters, and what
# no XML may hold.
_HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")

_TABLE = re.compile(r"\s*\[+\s*([\w.-]+)\s*\]")
_KEY = re.compile(r"""\s*["']?([\w-]+)["']?\s*=""")


def clean(text: str) -> str:
    """Text from a sandbox, safe to show: control and bidirectional-override characters made visible."""
    if text.isascii() and text.isprintable():  # most are, and that is told in a tenth of the time
        return text
    return _HARMFUL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def counted(number: int, noun: str) -> str:
    """1 task, 2 tasks, 1,000 boxes."""
    return f"{number:,} {noun}" + ("" if number == 1 else "es" if noun.endswith("x") else "s")


def line_of(toml: str, key: str, table: str = "") -> str:
    """``line 7: `` for what a person is told of a key of a TOML document, or of a whole ``table``; "" where it is not seen.

    A document that was read already is looked through by its form alone: keys in quotes are found, dotted ones and
    tables in one line are not.
    """
    here = ""
    for number, line in enumerate(toml.splitlines(), 1):
        if head := _TABLE.match(line):
            here = head[1]
        named = _KEY.match(line)
        if here == table and (named and named[1] == key if key else head):
            return f"line {number}: "
    return ""


def typed_value(text: str) -> Any:
    """What a person typed as a value: JSON, else the text; NaN is no JSON, so it is a text."""
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text


def json_text(value: Any, *, indent: int | None = None, ascii: bool = True) -> str:
    """Records and all that they hold as JSON. ``NaN`` and ``Infinity`` become null."""

    def plain(item: Any) -> Any:
        if is_dataclass(item) and not isinstance(item, type):
            return asdict(item)
        if isinstance(item, datetime):
            return item.isoformat()
        if isinstance(item, Iterable):
            return list(item)
        return str(item)

    whole: dict[str, Any] = {"default": plain, "indent": indent, "ensure_ascii": ascii}
    try:
        return json.dumps(value, allow_nan=False, **whole)
    except ValueError:  # an older release stored what is no JSON
        return json.dumps(json.loads(json.dumps(value, **whole), parse_constant=lambda _: None), **whole)
