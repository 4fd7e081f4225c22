"""Which version of the tables this program speaks, and how to tell what a file speaks.

Standard library only: a command that reads must not pay for alembic.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from agentos.errors import NotFound, Unavailable, UserError

HEAD = "0012"  # revision of the newest migration; a test compares them

_CAUSES = {
    "full": "the disk is full; free some space, nothing was half-written",
    "locked": "another process held it too long; try again",
    "readonly": "it is read-only; check the owner and the mode of the folder",
    "read-only": "it is read-only; check the owner and the mode of the folder",
    "malformed": "the file is damaged; restore it from a backup",
    "not a database": "the file is no SQLite database; restore it from a backup",
    "disk i/o": "the disk reported an error or is full",
}


def version_of(connection: sqlite3.Connection) -> str:
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
            "a newer release wrote it, so upgrade agentos"
        )


def refuse_missing(path: Path) -> None:
    """Raise NotFound when there is no ledger."""
    if not path.exists():
        raise NotFound(f"there is no ledger at {path}: type `agentos init` first, or name the home by --home")


def unavailable(path: Path, error: BaseException) -> Unavailable:
    """What SQLite says, as a sentence."""
    text = str(error)
    cause = next((cause for key, cause in _CAUSES.items() if key in text.lower()), text)
    return Unavailable(f"the ledger {path} cannot be used: {cause} ({text})")
