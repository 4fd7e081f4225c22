"""Which version of the tables this program speaks, and how to tell what a file speaks.

Standard library only: a command that reads must not pay for alembic.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from agentos.errors import ErrorKind, Unavailable, UserError

HEAD = "0013"  # revision of the newest migration; a test compares them

FULL = "the disk is full; free some space, nothing was half-written"
_CAUSES = {
    "disk is full": FULL,
    "no space left": FULL,
    "lock timeout": "another process held it too long; try again",
    "locked": "another process held it too long; try again",
    "readonly": "it is read-only; check the owner and the mode of the folder",
    "read-only": "it is read-only; check the owner and the mode of the folder",
    "unable to open": "its folder has to be writable also to read it; copy a home that lies on a read-only disk",
    "malformed": "the file is damaged; restore it from a backup",
    "not a database": "the file is no SQLite database; restore it from a backup",
    "connection slots": "the server has no connection left; raise its max_connections",
    "too many clients": "the server has no connection left; raise its max_connections",
    "connection": "see that the server runs",
    "disk i/o": "the disk reported an error or is full",
}
_KINDS = {
    "disk is full": ErrorKind.FULL,
    "no space left": ErrorKind.FULL,
    "lock timeout": ErrorKind.BUSY,
    "locked": ErrorKind.BUSY,
    "readonly": ErrorKind.NOT_WRITTEN,
    "read-only": ErrorKind.NOT_WRITTEN,
    "malformed": ErrorKind.DAMAGED,
    "not a database": ErrorKind.DAMAGED,
}


class LedgerCursor(Protocol):
    """What a statement gives: as much of ``sqlite3.Cursor`` as the ledger uses."""

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""
        ...

    def fetchone(self) -> Any:
        """The next row, None after the last."""
        ...

    def fetchall(self) -> list[Any]:
        """The rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class LedgerConnection(Protocol):
    """As much of ``sqlite3.Connection`` as the ledger uses. Raises ``sqlite3.Error``, whatever database it is."""

    @property
    def in_transaction(self) -> bool:
        """Whether one was begun and not ended."""
        ...

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> LedgerCursor:
        """Run a statement as SQLite takes it."""
        ...

    def executemany(self, sql: str, values: Iterable[Sequence[Any]], /) -> object:
        """Run it with each of the values."""
        ...

    def close(self) -> None:
        """End it."""
        ...


def version_of(connection: LedgerConnection) -> str:
    """The revision of an open ledger, "" when it is empty."""
    try:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return ""
        raise
    return str(row[0]) if row else ""


def refuse_newer(path: Path, version: str) -> None:
    """Raise UserError for a ledger that a later release wrote."""
    if version > HEAD:
        raise UserError(
            f"the ledger {path} has schema {version}, this program knows {HEAD}: "
            "a newer release wrote it, so upgrade agentos",
            kind=ErrorKind.NEWER,
        )


def unavailable(path: Path, error: BaseException) -> Unavailable:
    """What SQLite or the system says, as a sentence."""
    where = getattr(error, "where", path)
    if isinstance(error, OSError) and error.strerror:  # a path may hold any word
        said = error.strerror
        text = (
            said
            if error.filename is None or str(error.filename) == str(where)
            else f"{said}: {error.filename}"
        )
    else:
        said = text = " ".join(str(error).split())
    key = next((key for key in _CAUSES if key in said.lower()), "")
    cause = f"{_CAUSES[key]} ({text})" if key else text
    return Unavailable(
        f"the ledger {where} cannot be used: {cause}", kind=_KINDS.get(key, ErrorKind.UNAVAILABLE)
    )
