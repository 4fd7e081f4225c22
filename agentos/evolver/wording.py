"""Wording: what an edit of a text (a prompt, a memory, a skill's page, a document) must not bring in.

As with source, nothing here is a wall: the boxes hold and the replay measures. It keeps secrets, texts
that do not look like what they are, and answers to the very tasks of the evidence out of the registry.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence

from agentos.domain import Check, Json

SECRET = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|AKIA[0-9A-Z]{16}|\b(?:sk|ghp|gho|xox[abp])[-_][A-Za-z0-9_-]{16,}|eyJ[\w-]{10,}\.[\w-]{10,}\."
)
LINE_MAX = 600  # characters
EXPECTED_MIN = 4  # characters of an expected value that says something by itself


def fault_of_text(path: str, old: str, new: str, checks: Sequence[Check]) -> str:
    """Why the new text is refused, "" when it is not. ``checks`` are the evidence's."""
    added = [line for line in new.splitlines() if line not in set(old.splitlines())]
    text = "\n".join(added)
    secret = SECRET.search(text)
    if secret and secret.group() not in old:
        return "it holds what looks like a secret"
    for sign in text:
        if sign not in "\n\t" and unicodedata.category(sign) in ("Cc", "Cf", "Co", "Cs"):
            return f"it holds a character that is not seen (U+{ord(sign):04X})"
    if any(len(line) > LINE_MAX for line in added):
        return f"it has a line of more than {LINE_MAX} characters"
    if path.endswith(".toml"):
        try:
            tomllib.loads(new)
        except tomllib.TOMLDecodeError as error:
            return f"not valid TOML: {error}"
    found = sorted({value for value in _expected(checks) if _says(text, value) and not _says(old, value)})
    return f"it writes an expected value into the text ({', '.join(found)})" if found else ""


def _expected(checks: Sequence[Check]) -> Iterator[str]:
    for check in checks:
        for value in leaves(check.spec.get("value")):
            text = str(value)
            if len(text) >= EXPECTED_MIN:
                yield text


def _says(text: str, value: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(value)}(?![\w]|\.\d)", text) is not None


def leaves(value: Json) -> Iterator[Json]:
    """The texts and numbers within a JSON value."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value
