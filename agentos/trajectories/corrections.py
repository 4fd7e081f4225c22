"""What a person put right in a conversation, as texts that the right answer holds.

Only what the conversation itself bears out: said in a sentence that objects, missing in the answer before it, and
there in the answer that ended it. A question that goes on ("and for 2025?") objects to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from agentos.domain import Json
from agentos.trajectories.conversations import text_of

MOST = 5
LONGEST = 200  # characters of a value
_TRIED = 200  # of a conversation: somebody may have pasted a table
_OBJECTS = re.compile(
    r"\b(no|not|wrong|incorrect|instead|should|must|actually|correct|rather|expected|isn't|aren't|wasn't)\b",
    re.I,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_QUOTED = re.compile(r'"([^"\n]{1,200})"|“([^”\n]{1,200})”|`([^`\n]{1,200})`')
_NUMBER = re.compile(r"(?<![\w.,-])-?\d+(?:[.,:/-]\d+)*(?![\w])")


def corrected_values(messages: Sequence[Json]) -> list[str]:
    """Texts that the answer lacked, a person asked for, and the last answer has; in the order said."""
    spoken = [(message["role"], text_of(message.get("content")).strip()) for message in messages]
    spoken = [(role, text) for role, text in spoken if role in ("user", "assistant") and text]
    if not spoken or spoken[-1][0] != "assistant":
        return []
    last, before, tried = spoken[-1][1], "", list[tuple[str, str]]()
    for role, text in spoken[:-1]:
        if role == "assistant":
            before = text
        elif before:
            said = (value for sentence in _SENTENCE.split(text) for value in _values(sentence))
            tried += ((before, value) for value in islice(said, _TRIED - len(tried)))
    found = dict.fromkeys(value for old, value in tried if not _holds(old, value) and _holds(last, value))
    return [*found][:MOST]


def _values(sentence: str) -> list[str]:
    """What is quoted, and numbers of two digits and more, of a sentence that objects."""
    if not _OBJECTS.search(sentence):
        return []
    quoted = ["".join(groups).strip() for groups in _QUOTED.findall(sentence)]
    numbers = [
        text for text in _NUMBER.findall(_QUOTED.sub(" ", sentence)) if sum(map(str.isdigit, text)) > 1
    ]
    return [value for value in (*quoted, *numbers) if 0 < len(value) <= LONGEST]


def _holds(text: str, value: str) -> bool:
    """As a word of its own, so that 41 is not in 1415 and not in 41.30."""
    return re.search(rf"(?<![\w])(?<!\d[.,]){re.escape(value)}(?![\w]|[.,]\d)", text) is not None
