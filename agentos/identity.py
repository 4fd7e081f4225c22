"""Identity: ids that sort by time, and the one byte form by which anything is hashed."""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import is_dataclass
from datetime import datetime
from typing import Any, TypeAlias

# A JSON value. Not the recursive union: every reader checks what it got (it often comes from a
# sandbox), and the union would only add casts. Records treat one as immutable.
Json: TypeAlias = Any

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u


def new_id(prefix: str) -> str:
    """``prefix-`` and 13 characters: eight that grow with time (1 ms apart), five random."""
    number = (time.time_ns() // 1_000_000 & (1 << 40) - 1) << 25 | int.from_bytes(os.urandom(4)) >> 7
    letters = "".join(_ALPHABET[number >> shift & 31] for shift in range(60, -1, -5))
    return f"{prefix}-{letters}"


def canonical(value: object) -> bytes:
    """The one byte form of a record or JSON value: sorted keys, no spaces, UTF-8. Hash this."""

    return _ENCODER.encode(value).encode("utf-8", "surrogatepass")


def _plain(item: object) -> object:
    if is_dataclass(item) and not isinstance(item, type):
        return {name: getattr(item, name) for name in item.__dataclass_fields__}
    if isinstance(item, datetime):
        return item.isoformat()
    if isinstance(item, frozenset | set):
        return sorted(str(member) for member in item)
    raise TypeError(f"{type(item).__name__} has no canonical form")


# Made once: to make one takes as long as a short digest.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_plain)


def digest(value: object) -> str:
    """SHA-256 of the canonical form (or of the bytes themselves), 64 hex digits."""
    return hashlib.sha256(value if isinstance(value, bytes) else canonical(value)).hexdigest()
