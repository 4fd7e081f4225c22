"""Opens the ledger for writing: an engine with the right pragmas, and migrations under a lock.

SQLAlchemy's default engine begins a SQLite transaction only at the first write, so two processes
that read and then write both believe they won (measured: 183 of 600 jobs claimed twice). Here
every transaction is BEGIN IMMEDIATE.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from agentos.errors import NotFound
from agentos.ledger.schema import HEAD, refuse_newer, unavailable, version_of

BUSY_S = 30.0


def require_ledger(path: Path) -> None:
    """A home's ledger is made by `init` alone: one that got lost must not begin anew unnoticed."""
    if not path.exists() or path.stat().st_size == 0:
        raise NotFound(
            f"the ledger {path} is missing or empty: restore it from a backup, "
            "or type `agentos init` to begin with an empty one"
        )


def open_ledger(path: Path) -> Engine:
    """The engine of the ledger at ``path``, created or migrated to this program's schema first.

    Raises NotFound when the folder is missing, UserError when a newer release wrote the file,
    Unavailable when the disk is full or the file damaged.
    """
    if not path.parent.is_dir():
        raise NotFound(f"there is no folder {path.parent}: type `agentos init` first")
    engine = _engine(path)
    try:
        if _version(path) != HEAD:
            _migrate(path, engine)
    except (DBAPIError, sqlite3.DatabaseError, OSError) as error:
        engine.dispose()
        raise unavailable(path, getattr(error, "orig", None) or error) from error
    return engine


def _engine(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"timeout": BUSY_S, "check_same_thread": False, "isolation_level": None},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _record: Any) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # durable when the call returns

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _version(path: Path) -> str:
    """The file's revision, "" when it is new; makes the file, for its owner only."""
    # Never opened by hand once it is there: closing it would release the locks that SQLite holds on it
    # for this process, and another process would remove the log that this one still writes to.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(path, timeout=BUSY_S)) as connection:
        version = version_of(connection)
    refuse_newer(path, version)
    return version


def _migrate(path: Path, engine: Engine) -> None:
    from alembic import command
    from alembic.config import Config

    with open(path.with_name(path.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _version(path) == HEAD:  # another process was faster
            return
        config = Config()
        config.set_main_option("script_location", "agentos.ledger:migrations")
        with engine.begin() as connection:  # one transaction: all migrations or none
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
