"""``pytest.raises`` by kind and fields, and the messages of errors in one golden file.

What tells errors apart is their class, their ``kind``, what they say to type next and the names in them. Where the words
are the matter, ``assert_golden`` holds the whole message against ``tests/golden/messages.txt``; this writes the file again:

    WRITE_MESSAGES=1 .venv/bin/python -m pytest -n 0 TESTS
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from agentos.errors import AgentOSError

E = TypeVar("E", bound=BaseException)
# what is another at each run
_CHANGING = {
    "digest": re.compile(r"\b[0-9a-f]{16,}\b"),
    "folder": re.compile(r"/[^\s'\"`:;,)]*?/test_[^\s'\"`:;,)/]*?\d+(?=[/\s'\"`:;,)]|$)"),
    "id": re.compile(r"\b(?:task|run|evo|question|schedule|attempt|fail)-(?=[0-9a-z]*\d)[0-9a-z]{10,}\b"),
    "pid": re.compile(r"(?<=\bpid )\d+"),
    "person": re.compile(r"person:[\w.-]+\(\d+\)"),
    "port": re.compile(r"(?<=127\.0\.0\.1:)\d+"),
}
GOLDEN = Path(__file__).with_name("golden") / "messages.txt"


@contextmanager
def raises(
    error: type[E],
    kind: str = "",
    *,
    type_next: str = "",
    names: Sequence[str] = (),
    message: str = "",
    hidden: Mapping[str, object] | None = None,
) -> Iterator[pytest.ExceptionInfo[E]]:
    """The block ends with an error of this class and kind (that of the class, where none is given).

    ``type_next`` begins one of the commands that it says to type; ``names`` (ids, paths, values) stand in its text;
    ``message`` is the key of the whole text, as ``assert_golden`` takes it with ``hidden``.
    """
    with pytest.raises(error) as caught:
        yield caught
    found = caught.value
    if isinstance(found, AgentOSError):
        assert found.kind == (kind or getattr(error, "kind", "")), repr(found)
        assert any(command.startswith(type_next) for command in (*found.type_next, "")), found.type_next
    assert [name for name in names if name not in str(found)] == [], str(found)
    if message:
        assert_golden(message, found, hidden)


def assert_golden(key: str, error: BaseException | str, hidden: Mapping[str, object] | None = None) -> None:
    """What the error says is what the golden file has under ``key``; ``hidden``: a word -> what it stands for there."""
    message = str(error).strip()
    for word, value in (hidden or {}).items():
        message = message.replace(str(value), f"<{word}>")
    for word, pattern in _CHANGING.items():
        message = pattern.sub(f"<{word}>", message)
    message = message.replace("\n", "\\n")
    known = messages()
    if os.environ.get("WRITE_MESSAGES"):
        known[key] = message
        text = "".join(f"{name}: {known[name]}\n" for name in sorted(known))
        GOLDEN.write_text(text, encoding="utf-8")
    assert message == known.get(key), f"{key}: {message}"


def messages() -> dict[str, str]:
    """Key -> message, as the golden file has them."""
    lines = GOLDEN.read_text(encoding="utf-8").splitlines() if GOLDEN.exists() else []
    parts = (line.partition(": ") for line in lines)
    return {key: message for key, _, message in parts}
