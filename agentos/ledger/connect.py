"""Opens the ledger: a connection with the right pragmas, and migrations under a lock.

Where the settings name a PostgreSQL database it is opened there, by the same two functions.

By itself a SQLite transaction takes the write lock at its first write only, so two processes that
read and then write both believe they won (measured: 183 of 600 jobs claimed twice). Here every
transaction is BEGIN IMMEDIATE. Statements are text, prepared once a connection: SQLAlchemy, which took
five times as long to build and run one, is imported for migrations alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentos.errors import ErrorKind, NotFound, UserError, to_type
from agentos.ledger.postgres.address import address_of
from agentos.ledger.rows.schema import HEAD, LedgerConnection, refuse_newer, unavailable, version_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

BUSY_S = 30.0
# What all migrations together make of an empty file: without what they import, which takes ten times as long.
NEWEST = Path(__file__).parent / "migrations" / "newest.sql"


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


def open_ledger(path: Path, address: str | None = None) -> LedgerConnection:
    """A connection to the ledger at ``path``, created or migrated to this program's schema first.

    Where it lies, the settings beside ``path`` say, unless an ``address`` is given; "" is the file.

    One thread at a time may use it. Raises NotFound when the folder is missing, UserError when a newer release wrote the file,
    Unavailable when the disk is full or the file damaged.
    """
    if not path.parent.is_dir():
        raise NotFound(f"there is no folder {path.parent}: type ", to_type("agentos init"), " first")
    if address is None:
        address = address_of(path)
    if address:
        return _open_in_postgres(path, address)
    try:
        if _version(path) != HEAD:
            _migrate(path)
        return _connect(path)
    except (sqlite3.DatabaseError, OSError) as error:
        raise unavailable(path, error) from error


def open_to_read(path: Path) -> LedgerConnection:
    """A connection that cannot write. Raises NotFound without a ledger, UserError when it is of another release."""
    if address := address_of(path):
        from agentos.ledger.postgres.connection import PostgresConnection

        return PostgresConnection(address, read_only=True)
    uri = f"{path.absolute().as_uri()}?mode=ro"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)


def refuse_other(path: Path, connection: LedgerConnection) -> None:
    """Raise UserError for a ledger that another release wrote."""
    version = version_of(connection)
    refuse_newer(path, version)
    if version != HEAD:
        raise UserError(
            f"the ledger {path} is of an older release (schema {version or 'none'}, now {HEAD}): type ",
            to_type("agentos init"),
            " to bring it up to date",
            kind=ErrorKind.OLDER,
        )


class WriteWatcher:
    """Tells whether anything was written to the ledger, by any process; asking costs one small statement."""

    def __init__(self, path: Path) -> None:
        self._connection = open_to_read(path)
        in_file = isinstance(self._connection, sqlite3.Connection)
        self._sql = "PRAGMA data_version" if in_file else "SELECT CAST(pg_current_snapshot() AS text)"

    def version(self) -> object:
        """Another value after each commit; in PostgreSQL after one in any other database too. Raises sqlite3.Error."""
        (version,) = self._connection.execute(self._sql).fetchone()
        return version

    def close(self) -> None:
        """Ask no more."""
        self._connection.close()


def tables_of(connection: LedgerConnection) -> list[str]:
    """Names of all tables, also of those that a later release brings."""
    sql = (
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        if isinstance(connection, sqlite3.Connection)
        else "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    )
    return sorted(name for (name,) in connection.execute(sql))


def all_rows(connection: LedgerConnection, table: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """The columns of a table, and its rows one by one; within a transaction."""
    sql = f"SELECT * FROM {table}"  # noqa: S608 - a name of ``tables_of``
    if isinstance(connection, sqlite3.Connection):
        found = connection.execute(sql)
        return [column[0] for column in found.description], iter(found)
    from agentos.ledger.postgres.connection import PostgresConnection

    if not isinstance(connection, PostgresConnection):
        raise TypeError(f"{type(connection).__name__} is no database of the ledger")
    return connection.columns(table), connection.stream(sql)


def _engine(path: Path) -> Engine:
    """What alembic works with."""
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import StaticPool

    engine = create_engine("sqlite://", creator=lambda: _connect(path), poolclass=StaticPool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_S, check_same_thread=False, isolation_level=None, cached_statements=512
    )
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


def _open_in_postgres(path: Path, address: str) -> LedgerConnection:
    from agentos.ledger.postgres.connection import PostgresConnection
    from agentos.ledger.postgres.migrating import migrate

    try:
        connection = PostgresConnection(address)
        version = version_of(connection)
        refuse_newer(path, version)
        if version != HEAD:
            migrate(address)
    except sqlite3.DatabaseError as error:
        raise unavailable(path, error) from error
    return connection


def _migrate(path: Path) -> None:
    with open(path.with_name(path.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        version = _version(path)
        if version == HEAD:  # another process was faster
            return
        if not version:
            with closing(_connect(path)) as made:
                made.executescript(f"BEGIN IMMEDIATE;\n{NEWEST.read_text('utf-8')}COMMIT;")
            return
        with _no_daemon(path.parent):
            _keep_copy(path)
            migrate(path)


@contextmanager
def _no_daemon(home: Path) -> Iterator[None]:
    """Raises UserError beside another process that is the home's daemon: it knows the schema of before, and would go on with that.

    None is begun meanwhile: a daemon has its home's folder locked.
    """
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            if _daemon_of(home) != os.getpid():
                raise UserError(
                    f"the ledger of {home} is of an older release, whose daemon still runs: type ",
                    to_type("agentos daemon stop"),
                    " first, so that it can be brought up to date",
                    kind=ErrorKind.BUSY,
                ) from None
        yield
    finally:
        os.close(folder)


def _daemon_of(home: Path) -> int:
    """The pid that the home's daemon noted, 0 for none."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        return int(json.loads((home / "run" / "daemon.json").read_text())["pid"])
    return 0


def migrate(path: Path) -> None:
    """Bring the file there from whichever schema it has to this program's, in one transaction: all migrations or none."""
    from sqlalchemy.exc import DBAPIError

    from agentos.ledger.migrations import upgrade

    engine = _engine(path)
    try:
        with engine.begin() as connection:
            upgrade(connection)
    except DBAPIError as error:
        raise unavailable(path, error.orig or error) from error
    finally:
        engine.dispose()


def _keep_copy(path: Path) -> None:
    """The ledger as the release before knew it, beside it: the way back (docs/use/operating.md)."""
    version = _version(path)
    copy = path.with_name(f"{path.name}.before-{HEAD}-was-{version}")
    aside = copy.with_name(f"{copy.name}.new")
    aside.unlink(missing_ok=True)
    with closing(sqlite3.connect(path, timeout=BUSY_S)) as connection:
        connection.execute("VACUUM INTO ?", (str(aside),))
    aside.chmod(0o600)
    aside.rename(copy)
