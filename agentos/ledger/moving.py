"""Copies a whole ledger from one database to another, and seals the old one.

All is one transaction of the new one: either every row is there or none. What was copied is compared row by row before
anything relies on it. The old ledger stays as it is, but takes nothing more: a process that had it open fails with
a sentence instead of writing where nobody will look.
"""

# ruff: noqa: S608 - names of tables and columns come from the schema; values are bound

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from agentos.domain import dataclass
from agentos.errors import Conflict, UserError
from agentos.ledger.audit import Entry, HeadFile, faults, newest
from agentos.ledger.connect import all_rows, open_ledger, tables_of
from agentos.ledger.postgres.dialect import migration
from agentos.ledger.rows.record_types import transaction
from agentos.ledger.rows.schema import LedgerConnection, unavailable

_PIECE = 1_000  # rows that are written at once
_SQLITE = b"SQLite format 3\0"  # how each file of it begins
_SEAL = "moved"  # what the triggers' names end in
_ENTRIES = "SELECT seq, at, event, subject, detail, previous, hash FROM audit ORDER BY seq"


@dataclass(frozen=True, slots=True)
class LedgerMove:
    """What was moved. ``again``: the rows had been copied by a move that was cut off."""

    tables: int
    rows: int
    head: str
    again: bool


@dataclass(frozen=True, slots=True)
class _Content:
    """How many rows a table has, and a digest of them in any order."""

    rows: int
    digest: int


def move_ledger(path: Path, source: str, target: str) -> LedgerMove:
    """Copy the ledger of the home with ``path`` from one address to another ("" is the file), and seal the old one.

    The caller keeps daemons away, and lets the settings name the new place afterwards; until then the move may be
    asked for again. Raises UserError when other rows are there already, Conflict when something did not arrive as
    it was, and Unavailable.
    """
    old, new = open_ledger(path, source), open_ledger(path, target)
    try:
        with transaction(old):  # nobody writes to it from here on
            before = _contents(old)
            with transaction(new):
                if _is_sealed(new):
                    raise UserError(
                        f"the ledger in {target or path} was moved away from there, and takes no rows: give an empty database"
                    )
                again = _is_there(before, _contents(new), target or str(path))
                if not again:
                    _copy(old, new)
                    _compare(before, _contents(new))
                _check_chain(path, new)
            if not _is_sealed(old):
                _seal(old, target or str(path))
        return LedgerMove(len(before), sum(it.rows for it in before.values()), str(newest(new)), again)
    except sqlite3.Error as error:
        raise unavailable(path, error) from error
    finally:
        old.close()
        new.close()


def is_database(path: Path, *known: Path) -> bool:
    """Whether a file is to be copied as one: those that are ``known``, and what else of that ending SQLite made."""
    if path in known:
        return True
    if path.suffix != ".db" or not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def copy_database(path: Path, folder: Path) -> Path:
    """Any SQLite file in ``folder``, as of one transaction. Raises sqlite3.Error."""
    copy = folder / path.name
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=60)) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))
    copy.chmod(0o600)
    return copy


def copy_to_file(path: Path, source: str, file: Path) -> None:
    """The ledger of the home with ``path``, in the database ``source``, as of one moment in a new SQLite ``file``.

    Nothing is locked, and who writes goes on. What arrived is compared as ``move_ledger`` does. Raises Conflict,
    Unavailable.
    """
    old = open_ledger(path, source)
    try:
        new = open_ledger(file, "")
        try:
            old.execute("BEGIN")  # one moment, for all that is read until its end
            with transaction(new):
                _copy(old, new)
                _compare(_contents(old), _contents(new))
            old.execute("COMMIT")
            new.execute("PRAGMA journal_mode = DELETE")  # all of it in the one file
        finally:
            new.close()
    except sqlite3.Error as error:
        raise unavailable(path, error) from error
    finally:
        old.close()


def _tables(connection: LedgerConnection) -> list[str]:
    return [name for name in tables_of(connection) if name != "alembic_version"]


def _contents(connection: LedgerConnection) -> dict[str, _Content]:
    found = {}
    for table in _tables(connection):
        columns, rows = _sorted_rows(connection, table)
        count = total = 0
        for row in rows:
            count += 1
            text = repr((columns, row)).encode("utf-8", "surrogatepass")
            total = (total + int.from_bytes(hashlib.sha256(text).digest())) % (1 << 256)
        found[table] = _Content(count, total)
    return found


def _sorted_rows(connection: LedgerConnection, table: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Rows with their columns by name: a column that was added later stands elsewhere in the other database."""
    columns, rows = all_rows(connection, table)
    order = sorted(range(len(columns)), key=columns.__getitem__)
    return [columns[at] for at in order], (tuple(row[at] for at in order) for row in rows)


def _is_there(before: dict[str, _Content], there: dict[str, _Content], place: str) -> bool:
    """Whether all of it was copied already; raises UserError for rows of another ledger."""
    if not any(content.rows for content in there.values()):
        return False
    if there != before:
        raise UserError(
            f"{place} holds another ledger already: give an empty database, or move that one away"
        )
    return True


def _copy(old: LedgerConnection, new: LedgerConnection) -> None:
    for table in _tables(old):
        columns, rows = _sorted_rows(old, table)
        marks = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"
        while piece := [*islice(rows, _PIECE)]:
            new.executemany(sql, piece)


def _compare(before: dict[str, _Content], after: dict[str, _Content]) -> None:
    if wrong := sorted(name for name in before if before[name] != after.get(name)):
        raise Conflict(
            f"what arrived is not what was there, in {', '.join(wrong)}: nothing was switched over"
        )


def _check_chain(path: Path, new: LedgerConnection) -> None:
    kept = HeadFile(path.with_name("audit.head")).read()
    entries = (Entry.of(row) for row in new.execute(_ENTRIES))
    if found := faults(entries, kept):
        raise Conflict(f"the audit log is not whole, and is not moved so: {'; '.join(found[:3])}")


def _is_sealed(connection: LedgerConnection) -> bool:
    named: Sequence[tuple[str]]
    if isinstance(connection, sqlite3.Connection):
        named = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    else:
        named = connection.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal").fetchall()
    return any(name.endswith(_SEAL) for (name,) in named)


def _seal(connection: LedgerConnection, target: str) -> None:
    why = f"this ledger was moved to {target}".replace("'", "")
    for table in _tables(connection):
        for verb in ("insert", "update"):
            sql = (
                f"CREATE TRIGGER {table}_0_{verb}_{_SEAL} BEFORE {verb.upper()} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{why}'); END"
            )
            connection.execute(sql if isinstance(connection, sqlite3.Connection) else migration(sql))
