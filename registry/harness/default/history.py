"""What the model said and what came of it, as it is told to the model again.

Nothing in here depends on the clock, on chance or on the order in which parallel calls ended: a
recorded answer is found by the exact request.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


def tokens(value: Any) -> int:
    """How many tokens a JSON value may take: three bytes each, more than any text of ours has needed."""
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")) // 3 + 4


@dataclass
class Asked:
    """One tool call of a reply. ``wrong`` says why it cannot be made."""

    id: str
    name: str
    args: dict[str, Any]
    wrong: str = ""


@dataclass
class Seen:
    """What came of it: ``text`` as the model is told it, ``output`` the whole where that was cut."""

    ok: bool
    text: str
    whole: str = ""  # a digest of all that came out
    output: str = ""  # reference of the whole, as the tool read_output takes it


@dataclass
class Exchange:
    """One reply of the model and everything up to the next: results in the order of the calls."""

    message: dict[str, Any] | None  # the assistant's, as it is sent back; None: nothing usable came
    asked: list[Asked] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    note: str = ""  # ours, after the results
    as_text: bool = (
        False  # the calls stand in the message's text, and so do their results: a server may know no others
    )
    _size: int | None = None

    def messages(self) -> list[dict[str, Any]]:
        """In the form of the protocol."""
        found = [self.message] if self.message is not None else []
        told = list(zip(self.asked, self.seen, strict=True))
        if self.as_text:
            said = [f"Result of {asked.name}:\n{seen.text}" for asked, seen in told]
            said += [self.note] if self.note else []
            return [*found, {"role": "user", "content": "\n\n".join(said)}]
        for asked, seen in told:
            found.append({"role": "tool", "tool_call_id": asked.id, "content": seen.text})
        if self.note:
            found.append({"role": "user", "content": self.note})
        return found

    @property
    def size(self) -> int:
        """In tokens; call it when the exchange is complete."""
        if self._size is None:
            self._size = sum(tokens(message) for message in self.messages())
        return self._size

    def changed(self) -> None:
        """Its texts were made shorter."""
        self._size = None
