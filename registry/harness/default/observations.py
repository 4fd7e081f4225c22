"""What a tool gave, as the model is told it: head and tail of what is long, the whole kept for reading on."""

from __future__ import annotations

import json
from typing import Any

from turn_state import Turn

TOLD_MAX = 12_000  # bytes of one result
PAGE_MAX = 8_000  # characters that read_output gives at a time
_KEPT_MAX = 16 << 20  # characters of all results that were cut


class Outputs:
    """The whole of what was cut, by reference: ``output:1``, ``output:2``, …"""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._size = 0
        self._count = 0

    def __len__(self) -> int:
        return len(self._texts)

    def keep(self, text: str) -> str:
        """A reference to the text; the oldest are let go when there is too much."""
        self._count += 1
        reference = f"output:{self._count}"
        self._texts[reference] = text
        self._size += len(text)
        while self._size > _KEPT_MAX and len(self._texts) > 1:
            self._size -= len(self._texts.pop(next(iter(self._texts))))
        return reference

    def page(self, reference: str, offset: int, limit: int) -> str:
        """A part of it. Raises LookupError with what there is."""
        if reference not in self._texts:
            there = ", ".join(self._texts) or "none"
            raise LookupError(f"there is no {reference!r}; kept are: {there}")
        text = self._texts[reference]
        offset = max(0, offset)
        end = offset + max(1, min(limit, PAGE_MAX))
        rest = len(text) - end
        more = f"\n[{rest} characters follow: offset {end}]" if rest > 0 else "\n[end]"
        return text[offset:end] + more


def clipped(text: str, most: int, reference: str = "") -> str:
    """At most about ``most`` bytes: the head and the tail, and between them what was left out."""
    data = text.encode("utf-8", "replace")
    if len(data) <= most:
        return text
    half = max(0, most - 120) // 2
    head, tail = data[:half].decode("utf-8", "ignore"), data[len(data) - half :].decode("utf-8", "ignore")
    whole = f"; the whole is {reference}, see read_output" if reference else ""
    return (
        f"{head}\n[… {len(text) - len(head) - len(tail)} of {len(text)} characters left out{whole} …]\n{tail}"
    )


def told(turn: Turn) -> str:
    """What a call gave, in full: its output, or its fault; then what the tool printed."""
    if turn.fault is None:
        text = rendered(turn.answer)
    else:
        where = f" (at {turn.fault.where})" if turn.fault.where else ""
        text = f"It failed: {turn.fault.type}: {turn.fault.message}{where}"
    result = turn.result
    assert result is not None
    for name, clip in (("printed", result.stdout), ("printed as errors", result.stderr)):
        if clip.size:
            between = "\n[…]\n" if clip.tail else ""
            text += f"\n[{name}]\n{clip.head}{between}{clip.tail}"
    return text


def rendered(value: Any) -> str:
    """JSON, but texts of several lines stand as they are: a model reads them better, and they are shorter."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict) or not any(_long(item) for item in value.values()):
        return json.dumps(value, ensure_ascii=False)
    return "\n".join(
        f"{key}:\n{item}" if _long(item) else f"{key}: {json.dumps(item, ensure_ascii=False)}"
        for key, item in value.items()
    )


def _long(value: Any) -> bool:
    return isinstance(value, str) and "\n" in value
