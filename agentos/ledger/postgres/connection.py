"""A connection to PostgreSQL with as much of ``sqlite3.Connection`` as the ledger uses, its errors included.

A column holds text on both sides. Where SQLite lets bytes stand in it as they are (what is packed), they are written
in base64 behind a byte that no text of ours begins with; a text that does, or has a NUL in it, as well.
"""

from __future__ import annotations

import sqlite3
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from agentos.errors import ErrorKind, Unavailable, UserError, missing_extra
from agentos.ledger.postgres.dialect import statement
from agentos.ledger.rows.schema import LedgerCursor

try:
    import psycopg
    from psycopg.adapt import Buffer, Dumper, Loader
    from psycopg.types.numeric import Int8Dumper
except ImportError:  # neither of them brings it by itself
    raise UserError(
        missing_extra("postgres", "A ledger in PostgreSQL"), kind=ErrorKind.NOT_INSTALLED
    ) from None

WRITERS = 0x6167656E  # advisory lock of a writer until its commit: one order of all that is written
LEADER = WRITERS + 1  # and of the daemon as long as it lives, or of who moves the ledger
WAIT_S = 30
_TEXT = 25  # PostgreSQL's number of the type
_BYTES, _ODD = b"\x01b", b"\x01s"
# of the transaction: what became of it can be asked by that
_NUMBER = "SELECT CAST(pg_current_xact_id() AS text)"
_BEGIN = f"BEGIN; SELECT pg_advisory_xact_lock({WRITERS}); {_NUMBER}"
_BEGINS = {"BEGIN IMMEDIATE": _BEGIN, "BEGIN": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}
_SETTLED_S = 5.0  # that a commit whose answer was lost may go on at the server
TERM = "agentos.term"  # of a session of the engine: its tables' triggers ask for it
# that a leader's transaction may stand still: one that is frozen must not hold up the next leader
OPEN_MS = 4_000


def fence_writes(term: int) -> None:
    """From here on each transaction of this process that writes asks first whether its term is still the newest.

    For the whole process, as the engine is: it is what leads, or no longer does (``leadership``).
    """
    _BEGINS["BEGIN IMMEDIATE"] = (
        f"BEGIN; SET LOCAL idle_in_transaction_session_timeout = {OPEN_MS}; "
        f"SELECT pg_advisory_xact_lock({WRITERS}); SELECT agentos_control.fence({term}); {_NUMBER}"
    )


class PostgresFault(sqlite3.OperationalError):
    """What sqlite3 would have raised an OperationalError for. ``where`` is the database without secrets."""

    where: str = ""


class _OwnText(Dumper):
    oid = _TEXT

    def dump(self, obj: str) -> bytes:
        data = obj.encode()
        return _ODD + b64encode(data) if b"\0" in data or data[:1] == b"\x01" else data


class _OwnBytes(Dumper):
    oid = _TEXT

    def dump(self, obj: bytes) -> bytes:
        return _BYTES + b64encode(obj)


class _OwnLoader(Loader):
    def load(self, data: Buffer) -> str | bytes:
        raw = bytes(data)
        if raw[:1] != b"\x01":
            return raw.decode()
        plain = b64decode(raw[2:])
        return plain if raw[:2] == _BYTES else plain.decode()


class PostgresConnection:
    """One connection; one thread at a time. It is made anew where the server was restarted between two transactions."""

    def __init__(self, address: str, *, read_only: bool = False) -> None:
        self._address = address
        self._read_only = read_only
        self._raw = self._connect()
        self._begun = False
        self._number = ""  # of the transaction that writes

    @property
    def in_transaction(self) -> bool:
        """Whether one was begun and not ended, also one that failed or whose server is gone."""
        return self._begun

    def execute(self, sql: str, values: Sequence[Any] = ()) -> LedgerCursor:
        """As sqlite3 does; what it gives is in memory. Raises what sqlite3 raises."""
        try:
            return self._once(sql, values)
        except psycopg.Error as error:
            if not self._raw.closed or self._begun:  # half a transaction is not gone on with
                raise self._fault(error) from error
        self._raw = self._connect()  # the server went away while nothing was under way
        try:
            return self._once(sql, values)
        except psycopg.Error as error:
            raise self._fault(error) from error

    def executemany(self, sql: str, values: Iterable[Sequence[Any]]) -> object:
        """As sqlite3 does."""
        try:
            cursor = self._raw.cursor()
            cursor.executemany(statement(sql), [*values])
        except psycopg.Error as error:
            raise self._fault(error) from error
        return cursor

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a large result without having them all in memory; within a transaction."""
        try:
            with self._raw.cursor("stream") as cursor:
                cursor.itersize = 1000
                cursor.execute(sql.encode())
                yield from cursor
        except psycopg.Error as error:
            raise self._fault(error) from error

    def columns(self, table: str) -> list[str]:
        """Names of a table's columns."""
        try:
            found = self._raw.execute(f"SELECT * FROM {table} LIMIT 0".encode())  # noqa: S608 - of this package
        except psycopg.Error as error:
            raise self._fault(error) from error
        return [column.name for column in found.description or ()]

    def close(self) -> None:
        """End it; once more does nothing."""
        with suppress(psycopg.Error):
            self._raw.close()

    def _once(self, sql: str, values: Sequence[Any]) -> LedgerCursor:
        if found := _BEGINS.get(sql):
            return self._begin(found)
        if sql == "COMMIT":
            return self._commit()
        if sql == "ROLLBACK":
            self._begun = False
        return self._raw.execute(statement(sql).encode(), values or None)

    def _begin(self, sql: str) -> LedgerCursor:
        try:
            found = self._raw.execute(sql.encode(), prepare=False)
            while found.nextset():
                pass
        except psycopg.Error:
            if not self._raw.closed:  # begun, and waited too long for the lock
                self._raw.execute(b"ROLLBACK")
            raise
        self._number = str((found.fetchone() or ("",))[0]) if found.description else ""
        self._begun = True
        return self._raw.cursor()

    def _commit(self) -> LedgerCursor:
        """Whoever asks again for what was committed writes it twice: where the answer is lost, the server says what it did."""
        try:
            done = self._raw.execute(b"COMMIT")
        except psycopg.Error:
            if not (self._raw.closed and self._was_committed()):
                raise
            done = self._raw.cursor()
        if done.statusmessage == "ROLLBACK":  # of a transaction with a statement that failed
            self._begun = False
            raise psycopg.errors.InFailedSqlTransaction(
                "a statement of the transaction failed: nothing was written"
            )
        self._begun = False
        return done

    def _was_committed(self) -> bool:
        """By a new connection. Raises psycopg.Error, and PostgresFault where the server does not come back."""
        deadline, status = time.monotonic() + _SETTLED_S, "in progress"
        try:
            self._raw = self._connect()
        except PostgresFault as fault:
            fault.args = (f"{fault}; whether the last write was made will only be known when it is back",)
            raise
        while self._number and status == "in progress" and time.monotonic() < deadline:
            (status,) = self._raw.execute(
                b"SELECT pg_xact_status(CAST($1 AS xid8))", (self._number,)
            ).fetchone() or ("",)
            if status == "in progress":
                time.sleep(0.05)
        return status == "committed"

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        try:
            raw = psycopg.connect(
                self._address, autocommit=True, cursor_factory=psycopg.RawCursor, connect_timeout=10
            )
            mode = "on" if self._read_only else "off"
            raw.execute(
                f"SET lock_timeout = '{WAIT_S}s'; SET synchronous_commit = on; "
                f"SET standard_conforming_strings = on; SET default_transaction_read_only = {mode}".encode()
            )
        except psycopg.Error as error:
            raise self._fault(error) from error
        raw.adapters.register_dumper(str, _OwnText)
        raw.adapters.register_dumper(bytes, _OwnBytes)
        raw.adapters.register_dumper(int, Int8Dumper)
        raw.adapters.register_loader("text", _OwnLoader)
        return raw

    def _fault(self, error: psycopg.Error) -> sqlite3.Error:
        text = " ".join(str(error).split())
        if isinstance(error, psycopg.IntegrityError):
            return sqlite3.IntegrityError(text)
        if isinstance(error, psycopg.errors.UndefinedTable):
            text = f"no such table: {text}"
        fault = PostgresFault(text)
        fault.where = self._address
        return fault


class LeaderLock:
    """Held by the one daemon of a database, and by who moves its ledger; the server frees it when they are gone."""

    def __init__(self, address: str, why: str) -> None:
        """Raises UserError with ``why`` when another one has it, Unavailable without a server."""
        try:
            self._connection = PostgresConnection(address)
            (got,) = self._connection.execute(f"SELECT pg_try_advisory_lock({LEADER})").fetchone() or (False,)
        except sqlite3.Error as error:
            raise Unavailable(f"the database {address} cannot be used: {error}") from error
        if not got:
            self._connection.close()
            raise UserError(why, kind=ErrorKind.BUSY)

    def close(self) -> None:
        """Let it go."""
        self._connection.close()
