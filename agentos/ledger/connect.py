"""Opens the ledger for writing: a connection with the right pragmas, and migrations under a lock.

By itself a SQLite transaction takes the write lock at its first write only, so two processes that
read and then write both believe they won (measured: 183 of 600 jobs claimed twice). Here every
transaction is BEGIN IMMEDIATE. Statements are text, prepared once a connection: SQLAlchemy, which took
five times as long to build and run one, is imported for migrations alone.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agentos.errors import NotFound
from agentos.ledger.rows.schema import HEAD, refuse_newer, unavailable, version_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

BUSY_S = 30.0


def require_ledger(path: Path) -> None:
    """A home's ledger is made by `init` alone: one that got lost must not begin anew unnoticed."""
    if not path.exists() or path.stat().st_size == 0:
        raise NotFound(
            f"the ledger {path} is missing or empty: restore it from a backup, "
            "or type `agentos init` to begin with an empty one"
        )


def damage_of(path: Path, seconds: float = 20.0) -> str:
    """What SQLite's own check finds wrong with a file, "" for nothing (or for not enough time).

    To be called before this process has the file open otherwise: see ``_version``.
    """
    deadline = time.monotonic() + seconds
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=BUSY_S)) as connection:
            connection.set_progress_handler(lambda: time.monotonic() > deadline, 100_000)
            (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError:  # interrupted, or what whoever opens it next will say better
        return ""
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if answer == "ok" else " ".join(str(answer).split())


def open_ledger(path: Path) -> sqlite3.Connection:
    """A connection to the ledger at ``path``, created or migrated to this program's schema first.

    One thread at a time may use it. Raises NotFound when the folder is missing, UserError when a newer release wrote the file,
    Unavailable when the disk is full or the file damaged.
    """
    if not path.parent.is_dir():
        raise NotFound(f"there is no folder {path.parent}: type `agentos init` first")
    try:
        if _version(path) != HEAD:
            _migrate(path)
        return _connect(path)
    except (sqlite3.DatabaseError, OSError) as error:
        raise unavailable(path, error) from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is done inside is on disk afterwards, or none of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:  # something was raised; a full disk has rolled it back already
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")


def _engine(path: Path) -> Engine:
    """What alembic works with."""
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import StaticPool

    engine = create_engine("sqlite://", creator=lambda: _connect(path), poolclass=StaticPool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_S, check_same_thread=False, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # durable when the call returns
    return connection


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


def _migrate(path: Path) -> None:
    from alembic import command
    from alembic.config import Config
    from sqlalchemy.exc import DBAPIError

    with open(path.with_name(path.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _version(path) == HEAD:  # another process was faster
            return
        _keep_copy(path)
        config = Config()
        config.set_main_option("script_location", "agentos.ledger:migrations")
        engine = _engine(path)
        try:
            with engine.begin() as connection:  # one transaction: all migrations or none
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        except DBAPIError as error:
            raise unavailable(path, error.orig or error) from error
        finally:
            engine.dispose()


def _keep_copy(path: Path) -> None:
    """The ledger as the release before knew it, beside it: the way back (docs/use/operating.md)."""
    if not (version := _version(path)):
        return
    copy = path.with_name(f"{path.name}.before-{HEAD}-was-{version}")
    aside = copy.with_name(f"{copy.name}.new")
    aside.unlink(missing_ok=True)
    with closing(sqlite3.connect(path, timeout=BUSY_S)) as connection:
        connection.execute("VACUUM INTO ?", (str(aside),))
    aside.chmod(0o600)
    aside.rename(copy)
