"""Text that a sandbox, a model or a file wrote, made safe to show; and records as JSON. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Any


def clean(text: str) -> str:
    """Text from a sandbox, safe to show: control and bidirectional-override characters made visible."""
    return "".join(character if _harmless(character) else f"\\x{ord(character):02x}" for character in text)


def _harmless(character: str) -> bool:
    code = ord(character)
    if character in "\n\t":
        return True
    if code < 0x20 or 0x7F <= code < 0xA0:
        return False
    return not (0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069 or 0xD800 <= code <= 0xDFFF)


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
