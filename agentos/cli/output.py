"""How commands talk to a person or a program: tables and colour, or JSON, never both."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Any

from agentos.errors import UserError


def print_json(value: Any) -> None:
    """One JSON document on standard output: what ``--json`` promises."""

    def plain(item: Any) -> Any:
        if is_dataclass(item) and not isinstance(item, type):
            return asdict(item)
        if isinstance(item, datetime):
            return item.isoformat()
        if isinstance(item, Iterable):
            return list(item)
        return str(item)

    json.dump(value, sys.stdout, default=plain, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str) -> None:
    """A table; ``empty`` is the sentence for no rows (it says what to type next)."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    count = 0
    for row in rows:
        count += 1
        table.add_row(*(cell if isinstance(cell, Text) else Text(clean(str(cell))) for cell in row))
    Console(highlight=False).print(table if count else Text(empty, style="dim"))


def print_text(text: str, style: str = "") -> None:
    """One styled paragraph; the style is dropped where there is no terminal."""
    from rich.console import Console
    from rich.text import Text

    Console(highlight=False, soft_wrap=True).print(Text(clean(text), style=style))


def confirm(question: str, *, yes: bool) -> None:
    """Ask; returns when the answer is yes, raises UserError when it is not or cannot be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UserError(f"{question} This needs an answer: run it in a terminal, or add --yes.")
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise UserError("Nothing was changed.")


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
