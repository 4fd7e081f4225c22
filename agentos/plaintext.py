"""Text that a sandbox, a model or a file wrote, made safe to show. Standard library only."""

from __future__ import annotations


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
