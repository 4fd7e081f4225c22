"""How commands talk to a person or a program: tables and colour, or JSON, never both."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agentos.errors import AgentOSError, ErrorKind, UserError
from agentos.home import Home
from agentos.plaintext import clean as clean
from agentos.plaintext import counted as counted
from agentos.plaintext import json_text as json_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

# Beside those that JSON escapes itself: control characters, overrides of direction, halves of characters.
_OBEYED = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_MOMENT = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00")
LIMIT_MAX = 10**9  # rows of a list: more than there are, and a number that SQLite takes
_NOTES = 5
_NARROWEST = 8  # columns that still say something of a word
_READABLE = 60  # and of a sentence


def print_json(value: Any, *, line: bool = False) -> None:
    """One JSON document on standard output: what ``--json`` promises; one ``line`` where more follow.

    What a terminal would obey, and halves of characters, which no file can hold, are written as JSON's escapes,
    as is all beyond ASCII where the output takes no UTF-8.
    """
    sys.stdout.write(f"{_as_json(value, indent=None if line else 2, ascii=not _speaks_utf8())}\n")
    sys.stdout.flush()


def json_line(value: Any) -> str:
    """One JSON document as a line of ASCII, for whatever takes it."""
    return _as_json(value, indent=None, ascii=True)


def _as_json(value: Any, *, indent: int | None, ascii: bool) -> str:
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", json_text(value, indent=indent, ascii=ascii))


def short_text(value: Any, width: int) -> str:
    """A value on one line, as a person could type it again: a text as it is, anything else as JSON; cut at ``width``."""
    text = value if isinstance(value, str) else json_text(value, ascii=False)
    return text if len(text) <= width else f"{text[:width]}… ({len(text):,} characters)"


def _speaks_utf8() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") == "utf8"


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    empty: str,
    wrap: bool = False,
    below: bool = False,
) -> None:
    """A table; ``empty`` is the sentence for no rows (it says what to type next).

    A row is one line: a terminal gets what fits, a pipe everything. With ``wrap`` long cells are
    wrapped instead. With ``below`` the last column moves to a line of its own where it has no room.
    """
    if not wrap and _goes_into_a_pipe():
        _print_whole(columns, rows, empty)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    cells = [[cell if isinstance(cell, Text) else Text(clean(str(cell))) for cell in row] for row in rows]
    if not cells:
        console.print(Text(empty, style="dim"), soft_wrap=True)
    elif wrap:
        _print_wrapped(console, columns, cells)
    else:
        _print_lines(console, [Text(column, style="bold") for column in columns], cells, below=below)


def _goes_into_a_pipe() -> bool:
    """No terminal, and nobody says how wide one would be."""
    wanted = {"COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"} & os.environ.keys()
    return not wanted and not sys.stdout.isatty()


def _print_whole(columns: Sequence[str], rows: Iterable[Sequence[Any]], empty: str) -> None:
    """Without rich, which takes longer to import than thousands of lines take to print."""
    lines = [[clean(str(cell)).replace("\n", " ") for cell in row] for row in rows]
    if not lines:
        print(empty)
        return
    lines.insert(0, [*columns])
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write("  ".join(padded).rstrip() + "\n")


def _width(text: str) -> int:
    """In columns of a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _print_wrapped(console: Console, columns: Sequence[str], rows: Iterable[Sequence[Text]]) -> None:
    from rich.table import Table

    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*row)
    with console.capture() as drawn:
        console.print(table)
    for line in drawn.get().splitlines():
        print(line.rstrip())


def _print_lines(
    console: Console, head: Sequence[Text], rows: Sequence[Sequence[Text]], *, below: bool
) -> None:
    from rich.text import Text

    widths = [max(row[place].cell_len for row in (head, *rows)) for place in range(len(head))]
    room = console.width
    last = room - sum(widths[:-1]) - 2 * (len(widths) - 1)
    below = below and last < min(widths[-1], _READABLE)
    if below:
        widths.pop()
    _shrink(widths, room - 2 * (len(widths) - 1))
    for row in (head, *rows):
        line = Text("  ").join(_cut(cell, width) for cell, width in zip(row, widths, strict=False))
        line.rstrip()
        console.print(line, soft_wrap=True)
        if below and row is not head and row[-1].plain:
            rest = Text("    ").append_text(_cut(row[-1], room - 4))
            rest.rstrip()
            rest.stylize("dim")
            console.print(rest, soft_wrap=True)


def _shrink(widths: list[int], room: int) -> None:
    """Make columns narrower until they fit: the last first, then the widest; never the first, an id."""
    while sum(widths) > room and max(widths[1:], default=0) > _NARROWEST:
        widest = len(widths) - 1
        if widths[widest] <= _NARROWEST:
            widest = widths.index(max(widths[1:]), 1)
        widths[widest] -= 1


def _cut(cell: Text, width: int) -> Text:
    fitted = cell.copy()
    fitted.plain = " ".join(fitted.plain.split("\n"))
    fitted.truncate(width, overflow="ellipsis", pad=True)
    return fitted


def print_text(text: str, style: str = "") -> None:
    """One styled paragraph; the style is dropped where there is no terminal."""
    # as rich writes it, without its import
    if not style or not (sys.stdout.isatty() or "FORCE_COLOR" in os.environ):
        print(clean(text).rstrip(), flush=True)
        return
    from rich.console import Console
    from rich.text import Text

    Console(highlight=False, soft_wrap=True).print(Text(clean(text).rstrip(), style=style))


def print_diff(text: str) -> None:
    """A unified diff in colour, made safe to show."""
    from rich.console import Console
    from rich.text import Text

    shown = Text()
    for line in text.splitlines(keepends=True):
        styles = {"+": "green", "-": "red", "@": "cyan"}
        plain = line.startswith(("+++", "---", "diff ", "index "))
        shown.append(clean(line), style="bold" if plain else styles.get(line[:1], ""))
    Console(highlight=False, soft_wrap=True).print(shown, end="")


def time_text(when: datetime) -> str:
    """Local time, as short as it says the day: lists are narrow."""
    local = when.astimezone()
    return f"{local:%H:%M:%S}" if local.date() == datetime.now().astimezone().date() else f"{local:%Y-%m-%d}"


def moment_text(when: datetime | str) -> str:
    """Local time to the second, also of a time that a file has as text; "" stays so."""
    moment = datetime.fromisoformat(when) if isinstance(when, str) and when else when
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S}" if isinstance(moment, datetime) else ""


def with_local_times(sentence: str) -> str:
    """The same with each time as ``moment_text`` tells it: programs get that of UTC, people that of their clock."""
    return _MOMENT.sub(lambda found: moment_text(found[0]), sentence)


def tell_progress(sentence: str) -> None:
    """What takes a while, to whoever sits at a terminal and waits; nothing elsewhere."""
    if sys.stderr.isatty():
        print(sentence, file=sys.stderr, flush=True)


def tell_notes(sentences: Sequence[str]) -> None:
    """What whoever typed the command should know, on standard error: the first of them, and how many more."""
    for sentence in sentences[:_NOTES]:
        print(clean(f"Note: {sentence}"), file=sys.stderr)
    if len(sentences) > _NOTES:
        print(f"And {len(sentences) - _NOTES} more such notes.", file=sys.stderr)


def tell_cut(rows: int, limit: int, usual: int) -> None:
    """That a list is as long as lists are, and there may be more, to who asked for no other length."""
    if rows == limit == usual:
        tell_notes([f"these are the newest {usual}; --limit N shows more."])


def tell_outdated(home: Home) -> None:
    """Say on standard error that this release ships what the home has not taken in."""
    from agentos.registry.store import Registry
    from agentos.registry.upgrade import outdated
    from agentos.shipped import seed_files

    with suppress(AgentOSError):
        names = outdated(Registry(home.registry).repository, seed_files())
        if names:
            shown = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
            said = f"This release ships other content for {counted(len(names), 'resource')} ({shown})"
            print(f"{said}; `agentos registry upgrade` takes it in.", file=sys.stderr)


def confirm(question: str, *, yes: bool) -> None:
    """Ask; returns when the answer is yes, raises UserError when it is not or cannot be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UserError(
            f"{question} This needs an answer: run it in a terminal, or add --yes.", kind=ErrorKind.USAGE
        )
    print(clean(f"{question} [y/N] "), end="", file=sys.stderr, flush=True)  # output may be for a program
    if input().strip().lower() not in ("y", "yes"):
        raise UserError("Nothing was changed.")


def held_words(held: dict[str, Any]) -> str:
    """Why new runs do not get what the registry holds, and what to do about it."""
    told = f"new runs get {held['served'][:12]}, not {held['main'][:12]}: {held['why']}"
    return f"{told}  (`{held['undo']}`)" if held["undo"] else told


def tell_held(home: Home) -> None:
    """After a change: that new runs do not get it yet, where an earlier one is still being probed or failed."""
    from agentos.daemon.upkeep.status import HELD
    from agentos.ledger.postgres.address import has_ledger
    from agentos.ledger.reading import Reader

    with suppress(AgentOSError):  # what was asked for is done
        if has_ledger(home.ledger) and (held := Reader(home.ledger).get_kv(HELD)):
            print_text(f"Not in force yet: {held_words(held)}", "yellow")
