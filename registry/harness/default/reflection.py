"""What a model is told beside a result that shows it is getting nowhere."""

from __future__ import annotations

import json
from typing import Any

_FIRST = "Change what this message complains about. The same call with the same arguments will fail again."
_AGAIN = (
    "This exact call has failed before. Do not repeat it: look at the input, at the tool's description or at "
    "the file it names, and call with other arguments."
)
_SECOND = "This tool has now failed twice in a row. Say to yourself what you assumed, and test that first."
_LATER = (
    "This tool has failed {count} times in a row. Leave it: take another tool or another way, or answer with "
    "what you know and what is in the way."
)
CIRCLES = (
    "You are going in circles: the last calls and their results repeat earlier ones, so repeating them once "
    "more gives nothing new. Say what is missing, then do something else, or answer with what you have."
)


class Reflection:
    """Counts what fails, and says what to make of it."""

    def __init__(self) -> None:
        self._in_a_row: dict[str, int] = {}
        self._failed: set[str] = set()

    def on(self, tool: str, args: dict[str, Any], *, ok: bool) -> str:
        """A note to stand below the result, "" where there is nothing to say."""
        if ok:
            self._in_a_row.pop(tool, None)
            return ""
        call = json.dumps([tool, args], sort_keys=True, ensure_ascii=False)
        known = call in self._failed
        self._failed.add(call)
        count = self._in_a_row[tool] = self._in_a_row.get(tool, 0) + 1
        if count > 2:
            return _LATER.format(count=count)
        if known:
            return _AGAIN
        return _SECOND if count == 2 else _FIRST
