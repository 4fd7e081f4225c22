"""Which control process leads on a database, and that no other one writes there.

The leader holds PostgreSQL's advisory lock in a session of its own. The server ends that session when the process or its
machine is gone, and by ``idle_session_timeout`` when it says nothing for a few seconds, frozen or cut off: so the lock
frees itself. Whoever gets it raises the *term*. Each transaction of the leader's process on the ledger, and each
statement of its engine by a trigger, asks whether the term is still its own (``agentos_control.fence``), under a lock of
the row that whoever raises the term waits for: one that was replaced writes nothing more, whenever it wakes up.
"""

# ruff: noqa: S608 - constants of this module

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from typing import Any

import psycopg

from agentos.errors import Unavailable, UserError
from agentos.ledger.postgres.connection import LEADER, WRITERS, fence_writes

SILENT_MS = 4_000  # without a word of the leader, until the server ends its session
_ASK_S = 1.0
_TRANSACTION_WAIT = "10s"  # for the transactions of the leader before, which the server ends by itself
_STAND_BY = "agentos stand-by"  # the session's name, by which `daemon status` finds it

# Beside the ledger's schema, as the engine's tables are: it belongs to the database, and moves nowhere with the ledger.
_SCHEMA = """
CREATE SCHEMA IF NOT EXISTS agentos_control;
CREATE TABLE IF NOT EXISTS agentos_control.leader (
  one boolean PRIMARY KEY DEFAULT true CHECK (one), term bigint NOT NULL, name text NOT NULL, since timestamptz NOT NULL
);
INSERT INTO agentos_control.leader (term, name, since) VALUES (0, '', now()) ON CONFLICT DO NOTHING;
CREATE OR REPLACE FUNCTION agentos_control.fence(mine bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE newest bigint;
BEGIN
  SELECT term INTO newest FROM agentos_control.leader FOR SHARE;
  IF newest <> mine THEN
    RAISE EXCEPTION 'another control process leads (term %): this one (term %) writes nothing more', newest, mine
      USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
END $$;
CREATE OR REPLACE FUNCTION agentos_control.fence_statement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('agentos.term', true) <> '' THEN
    PERFORM agentos_control.fence(current_setting('agentos.term')::bigint);
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION agentos_control.fence_engine() RETURNS void LANGUAGE plpgsql AS $$
DECLARE name text;
BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'dbos' AND NOT EXISTS (
    SELECT 1 FROM pg_trigger WHERE tgname = 'agentos_fence' AND tgrelid = format('dbos.%I', tablename)::regclass)
  LOOP
    EXECUTE format('CREATE TRIGGER agentos_fence BEFORE INSERT OR UPDATE OR DELETE ON dbos.%I '
      'FOR EACH STATEMENT EXECUTE FUNCTION agentos_control.fence_statement()', name);
  END LOOP;
END $$;
"""
# an old leader's transactions keep the row, a new one waits for them
_RAISE = (
    f"BEGIN; SET LOCAL lock_timeout = '{_TRANSACTION_WAIT}'; SELECT pg_advisory_xact_lock({WRITERS}); "
    "UPDATE agentos_control.leader SET term = term + 1, name = {name}, since = now(); COMMIT"
)
_LOCKED = (
    "SELECT l.pid FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 0 "
    f"AND l.objid = {LEADER} AND l.objsubid = 1 "
    "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@dataclass(frozen=True, slots=True)
class Control:
    """Who leads on a database. ``leads`` is False where nobody holds the lock: then ``name`` led last."""

    term: int
    name: str
    since: str
    leads: bool
    stand_bys: tuple[str, ...]


class Leadership:
    """One control process' part in it. ``name`` is how it is called in `agentos daemon status`."""

    def __init__(self, address: str, name: str, silent_ms: int = SILENT_MS) -> None:
        self.term = 0
        self._address, self._name, self._silent_ms = address, name, silent_ms
        self._session: psycopg.Connection[tuple[Any, ...]] | None = None
        self._closing = threading.Event()
        self._watch: threading.Thread | None = None

    def take(self) -> bool:
        """Lead, if nobody does: from here on this process' transactions carry the term. Raises Unavailable, UserError."""
        try:
            session = self._open()
            (got,) = session.execute(f"SELECT pg_try_advisory_lock({LEADER})".encode()).fetchone() or (False,)
            if got:
                session.execute(_SCHEMA.encode())
                session.execute(_RAISE.format(name=_quoted(self._name)).encode())
                self.term = _term(session)
                fence_writes(self.term)
            return bool(got)
        except psycopg.Error as error:
            self._drop()
            why = f"the database {self._address} cannot be used: {' '.join(str(error).split())}"
            # else no right to make a schema there, which no waiting brings
            raise (Unavailable if isinstance(error, psycopg.OperationalError) else UserError)(why) from error

    def keep(self, lost: Callable[[str], None]) -> None:
        """Begin to hold it: ``lost`` is called once, on a thread of its own, when another process leads."""
        self._watch = threading.Thread(target=self._keep, args=(lost,), name="leadership", daemon=True)
        self._watch.start()

    def close(self) -> None:
        """Let it go; it may be taken again."""
        self._closing.set()
        if self._watch is not None:
            self._watch.join()
            self._watch = None
        self._closing.clear()
        if self._session is not None:
            # else the server only does it when it sees that the session is gone
            with suppress(psycopg.Error):
                self._session.execute("SELECT pg_advisory_unlock_all()")
        self._drop()

    def _keep(self, lost: Callable[[str], None]) -> None:
        while not self._closing.wait(_ASK_S):
            try:
                session = self._open()
                # held already, unless the session is a new one
                held = session.execute(f"{_LOCKED} AND l.pid = pg_backend_pid()".encode()).fetchone()
                if held is None:
                    held = session.execute(
                        f"SELECT 1 WHERE pg_try_advisory_lock({LEADER})".encode()
                    ).fetchone()
                newest = _term(session)
            except psycopg.Error:  # the server is away: it takes no row of anybody meanwhile
                self._drop()
                continue
            if newest != self.term:
                if not self._closing.is_set():
                    lost(f"another control process leads (term {newest}, ours was {self.term})")
                return
            if held is None:
                self._drop()  # our own session of before, which the server has not given up yet

    def _open(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._session is None or self._session.closed:
            self._session = psycopg.connect(
                self._address,
                autocommit=True,
                connect_timeout=3,
                application_name=f"{_STAND_BY} {self._name}"[:63],
                keepalives_idle=2,
                keepalives_interval=1,
                keepalives_count=2,
                tcp_user_timeout=self._silent_ms,
                options=f"-c idle_session_timeout={self._silent_ms} -c lock_timeout=3s -c client_min_messages=warning",
            )
        return self._session

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with suppress(psycopg.Error):
                session.close()


def control(address: str) -> Control | None:
    """Who leads, None where nobody ever did. Raises Unavailable."""
    try:
        with psycopg.connect(address, autocommit=True, connect_timeout=3) as session:
            (there,) = session.execute(
                "SELECT to_regclass('agentos_control.leader') IS NOT NULL"
            ).fetchone() or (False,)
            if not there:
                return None
            row = session.execute("SELECT term, name, since FROM agentos_control.leader").fetchone()
            holder = session.execute(_LOCKED.encode()).fetchone()
            others = session.execute(
                "SELECT pid, application_name FROM pg_stat_activity WHERE datname = current_database() "
                f"AND application_name LIKE '{_STAND_BY} %' ORDER BY backend_start"
            ).fetchall()
    except psycopg.Error as error:
        raise Unavailable(f"the database {address} cannot be used: {' '.join(str(error).split())}") from error
    if row is None or not row[0]:
        return None
    waiting = tuple(
        name.removeprefix(f"{_STAND_BY} ") for pid, name in others if holder is None or pid != holder[0]
    )
    since = row[2].astimezone(UTC).isoformat(timespec="seconds")  # as `agentos status` has all times
    return Control(int(row[0]), str(row[1]), since, holder is not None, waiting)


def wait_to_lead(leadership: Leadership, go_on: Callable[[], bool], tell: Callable[[str], None]) -> bool:
    """Ask until it is ours, or ``go_on`` says no; whether it is. ``tell`` gets why it cannot be asked, once."""
    told = ""
    while go_on():
        try:
            if leadership.take():
                return True
            told = ""
        except Unavailable as error:
            if told != (told := str(error)):
                tell(told)
            time.sleep(3 * _ASK_S)  # a server that comes back is found by who led before first
        time.sleep(_ASK_S / 4)
    return False


def refuse_second(leadership: Leadership, why: str) -> None:
    """Lead, or raise UserError with ``why`` when another process does."""
    if not leadership.take():
        leadership.close()
        raise UserError(why)


def name_of(home: str) -> str:
    """How a control process is called: the machine's name and the home's place."""
    return f"{os.uname().nodename}:{home}"


def _term(session: psycopg.Connection[tuple[Any, ...]]) -> int:
    (term,) = session.execute("SELECT term FROM agentos_control.leader").fetchone() or (0,)
    return int(term)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''").replace("\0", "") + "'"
