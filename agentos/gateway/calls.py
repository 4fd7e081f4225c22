"""The record of model calls, ``HOME/calls.db``: what was asked, what came back, what it cost.

A call is written as an intent before it is sent and completed before its answer is given away, so
that a crash can neither lose nor repeat what was paid. One thread writes, and commits for all that
wait at the time: 64 calls in flight share a flush of the disk.
"""

from __future__ import annotations

import asyncio
import json
import queue
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

from agentos.domain import Json, canonical, digest
from agentos.errors import ModelFailed, Unavailable
from agentos.gateway.speed import CALLS_MAX, CallTiming, ModelSpeed

VERSION = 1
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS calls (
    id TEXT PRIMARY KEY,
    run_id TEXT NOT NULL,
    evolution_id TEXT NOT NULL,
    key TEXT NOT NULL,             -- of the canonical request
    nth INTEGER NOT NULL,          -- the how many-th call of this key in its run, from 0
    idempotency TEXT NOT NULL,     -- sent with every try
    state TEXT NOT NULL,           -- intent, done, failed (may be asked again), moved (to another run)
    model TEXT NOT NULL,           -- resource that was asked
    answered_by TEXT NOT NULL,     -- resource that answered, perhaps a fallback
    request TEXT NOT NULL,         -- envelope, see Bodies; '' when texts are not kept
    response TEXT NOT NULL,        -- body; '' when there is none
    input_tokens INTEGER NOT NULL, -- an estimate while the state is intent
    output_tokens INTEGER NOT NULL,
    estimated INTEGER NOT NULL,
    usd REAL,                      -- NULL: the price is not known
    latency_ms REAL NOT NULL,
    tries INTEGER NOT NULL,
    fault TEXT NOT NULL,
    message TEXT NOT NULL,
    served_from TEXT NOT NULL,     -- id of the recorded call that this one was served from
    started_at REAL NOT NULL,      -- seconds since 1970
    UNIQUE (run_id, key, nth)
) STRICT;
CREATE INDEX IF NOT EXISTS calls_by_time ON calls (started_at);
CREATE INDEX IF NOT EXISTS calls_by_evolution ON calls (evolution_id, started_at);
CREATE TABLE IF NOT EXISTS bodies (
    sha256 TEXT PRIMARY KEY,       -- of parent and content
    parent TEXT NOT NULL,          -- the message before this one, or ''
    content BLOB NOT NULL
) STRICT, WITHOUT ROWID;
PRAGMA user_version = {VERSION};
"""
_BATCH = 256
_BUSY_S = 10.0


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """One row of ``calls``; the schema says what each field means."""

    id: str
    run_id: str
    evolution_id: str
    key: str
    nth: int
    idempotency: str
    state: str
    model: str
    answered_by: str
    request: str
    response: str
    input_tokens: int
    output_tokens: int
    estimated: int
    usd: float | None
    latency_ms: float
    tries: int
    fault: str
    message: str
    served_from: str
    started_at: float


_FIELDS = tuple(item.name for item in fields(ProviderCall))
_COLUMNS = ", ".join(_FIELDS)
# What was asked while the clock was ahead is of that day, and not of each until then.
_ON_DAY = "started_at >= ? AND started_at < ? + 86400.0"
_PUT = f"INSERT OR REPLACE INTO calls ({_COLUMNS}) VALUES ({', '.join('?' * len(_FIELDS))})"  # noqa: S608


@dataclass(frozen=True, slots=True)
class CallTotals:
    """What calls used, those under way with their estimates. Served ones use nothing."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ModelToday:
    """What was asked of one model on a day; ``faults`` counts by kind."""

    model: str
    calls: int
    served: int
    tokens: int
    usd: float | None  # None: no call's price is known
    faults: Mapping[str, int]


# --- bodies -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bodies:
    """Texts to store, each under the hash of its content and of the message before it.

    A conversation that grows by a message stores that message only: its beginning is there already.
    """

    chain: tuple[tuple[str, str, bytes], ...] = ()  # (sha256, parent, content), in order
    others: tuple[tuple[str, bytes], ...] = ()

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(len(body[-1]) for body in (*self.chain, *self.others))


def envelope(asked: Mapping[str, Any]) -> tuple[str, Bodies]:
    """The request as it stands in its row, and the texts that it refers to."""
    chain = []
    parent = ""
    for message in asked["messages"]:
        content = canonical(message)
        sha = digest(parent.encode() + content)
        chain.append((sha, parent, content))
        parent = sha
    rest = {key: value for key, value in asked.items() if key != "messages"}
    others = []
    if "tools" in rest:
        content = canonical(rest["tools"])
        others.append((digest(content), content))
        rest["tools"] = others[0][0]
    text = canonical({**rest, "messages": parent}).decode("utf-8", "surrogatepass")
    return text, Bodies(tuple(chain), tuple(others))


def _store(connection: sqlite3.Connection, bodies: Bodies) -> None:
    put = "INSERT OR IGNORE INTO bodies (sha256, parent, content) VALUES (?, ?, ?)"
    for row in reversed(bodies.chain):  # from the newest message: below a known one all are known
        if not connection.execute(put, row).rowcount:
            break
    connection.executemany(put, [(sha, "", content) for sha, content in bodies.others])


# --- reading ----------------------------------------------------------------------------------


class CallReading:
    """Reads the record, in any process and while others write. Not for several threads."""

    def __init__(self, path: Path) -> None:
        """Empty where no gateway has made it yet, or one is just about to; raises Unavailable for a newer one."""
        self._connection = _open_to_read(path)

    def find(self, run_id: str, key: str, nth: int) -> ProviderCall | None:
        """The ``nth`` call of this key in the run."""
        row = self._connection.execute(
            f"SELECT {_COLUMNS} FROM calls WHERE run_id = ? AND key = ? AND nth = ?",  # noqa: S608
            (run_id, key, nth),
        ).fetchone()
        return ProviderCall(*row) if row else None

    def calls(self, run_id: str) -> Sequence[ProviderCall]:
        """All calls of a run, oldest first."""
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM calls WHERE run_id = ? ORDER BY started_at, rowid",  # noqa: S608
            (run_id,),
        )
        return [ProviderCall(*row) for row in rows]

    def under_way(self, work_id: str) -> Sequence[ProviderCall]:
        """Calls of a run or an evolution that have no answer yet, newest first; of dead gateways too."""
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM calls WHERE state = 'intent' AND (run_id = ? OR evolution_id = ?) "  # noqa: S608
            "ORDER BY started_at DESC",
            (work_id, work_id),
        )
        return [ProviderCall(*row) for row in rows]

    def was_asked(self, run_id: str) -> bool:
        """Whether any call of the run was asked rather than served."""
        query = "SELECT 1 FROM calls WHERE run_id = ? AND served_from = '' LIMIT 1"
        return self._connection.execute(query, (run_id,)).fetchone() is not None

    def usd(self, call_id: str) -> float | None:
        """What a call cost; None where nobody knows."""
        row = self._connection.execute("SELECT usd FROM calls WHERE id = ?", (call_id,)).fetchone()
        return row[0] if row else None

    def body(self, sha256: str) -> bytes:
        """A response, or another text; raises Unavailable when it is not there."""
        row = self._connection.execute("SELECT content FROM bodies WHERE sha256 = ?", (sha256,)).fetchone()
        if row is None:
            raise Unavailable(f"the record of model calls has lost the text {sha256[:12]}")
        return bytes(row[0])

    def request(self, call: ProviderCall) -> dict[str, Any]:
        """The request of a call whose texts were kept."""
        asked: dict[str, Any] = json.loads(call.request)
        if "tools" in asked:
            asked["tools"] = json.loads(self.body(asked["tools"]))
        rows = self._connection.execute(
            "WITH RECURSIVE chain (parent, content, place) AS ("
            "SELECT parent, content, 0 FROM bodies WHERE sha256 = ? UNION ALL "
            "SELECT bodies.parent, bodies.content, place + 1 FROM bodies JOIN chain "
            "ON bodies.sha256 = chain.parent) SELECT content FROM chain ORDER BY place DESC",
            (asked["messages"],),
        )
        asked["messages"] = [json.loads(content) for (content,) in rows]
        return asked

    def spent(self, *, run_id: str = "", evolution_id: str = "", midnight: float = 0.0) -> CallTotals:
        """What was used by a run, or an evolution, or on the day that begins at a moment."""
        where: str = _ON_DAY
        given: tuple[object, ...] = (midnight, midnight)
        if run_id:
            where, given = "run_id = ?", (run_id,)
        elif evolution_id:
            where, given = "evolution_id = ?", (evolution_id,)
        row = self._connection.execute(
            "SELECT count(*), total(input_tokens + output_tokens), total(usd), total(latency_ms) "  # noqa: S608
            f"FROM calls WHERE {where} AND served_from = '' AND state != 'moved'",
            given,
        ).fetchone()
        return CallTotals(int(row[0]), int(row[1]), float(row[2]), float(row[3]) / 1e3)

    def models_on(self, midnight: float) -> Sequence[ModelToday]:
        """What was asked of each model on the day that begins then, by name."""
        rows = self._connection.execute(
            "SELECT model, fault, sum(served_from = ''), sum(served_from != ''), "  # noqa: S608
            "total(input_tokens + output_tokens), sum(usd) FROM calls "
            f"WHERE {_ON_DAY} AND state != 'moved' GROUP BY model, fault ORDER BY model, fault",
            (midnight, midnight),
        ).fetchall()
        return [
            ModelToday(
                model,
                calls=sum(row[2] for row in rows if row[0] == model),
                served=sum(row[3] for row in rows if row[0] == model),
                tokens=int(sum(row[4] for row in rows if row[0] == model)),
                usd=_sum([row[5] for row in rows if row[0] == model]),
                faults={row[1]: row[2] for row in rows if row[0] == model and row[1] and row[2]},
            )
            for model in sorted({row[0] for row in rows})
        ]

    def speed(self, model: str, since: float) -> ModelSpeed:
        """How quick the model's calls since that moment were, those that it answered itself at the first try."""
        rows = self._connection.execute(
            "SELECT input_tokens, output_tokens, latency_ms / 1e3, fault = 'slow' FROM calls "
            "WHERE started_at >= ? AND model = ? AND served_from = '' AND (fault = 'slow' OR "
            "(state = 'done' AND answered_by = model AND estimated = 0 AND tries = 1)) "
            "ORDER BY started_at DESC, rowid DESC LIMIT ?",
            (since, model, CALLS_MAX),
        )
        return ModelSpeed([CallTiming(read, written, s, bool(slow)) for read, written, s, slow in rows])

    def close(self) -> None:
        """Release the file."""
        self._connection.close()


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    if read_only:
        # a path may have signs that mean something in an address
        where = f"{path.absolute().as_uri()}?mode=ro"
        connection = sqlite3.connect(
            where, uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
        )
    else:
        connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    found = _version(connection)
    if found > VERSION:
        connection.close()
        raise Unavailable(
            f"{path} was written by a newer agentos (version {found}, this one knows {VERSION})"
        )
    return connection


def _version(connection: sqlite3.Connection) -> int:
    """0 until all tables are there."""
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def _open_to_read(path: Path) -> sqlite3.Connection:
    """For reading; an empty one in memory until the record is whole."""
    if path.exists():
        connection = _connect(path, read_only=True)
        if _version(connection):
            return connection
        connection.close()
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.executescript(_SCHEMA)
    return connection


# --- writing ----------------------------------------------------------------------------------

_Write: TypeAlias = Callable[[sqlite3.Connection], None]


@dataclass(slots=True)
class _Waiting:
    write: _Write
    done: asyncio.Future[None]
    error: Exception | None = None


class CallRecord(CallReading):
    """The record, for the one process that writes it. Used on one event loop."""

    def __init__(self, path: Path) -> None:
        """Make it where it is missing; raises Unavailable when that cannot be done."""
        try:
            self._writer = _connect(path)
            path.chmod(0o600)
            if _version(self._writer) < VERSION:
                self._writer.executescript(_SCHEMA)
            super().__init__(path)
        except (OSError, sqlite3.Error) as error:
            raise Unavailable(f"the record of model calls {path} cannot be opened: {error}") from None
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="record", daemon=True)
        self._thread.start()

    async def put(self, call: ProviderCall, bodies: Bodies | None = None, *, moved: str = "") -> None:
        """Write the row (replacing the one of its run, key and number) and its texts; durable on return.

        ``moved`` is the id of a call of another run that this one takes over. Raises ModelFailed when
        nothing can be written, a full disk first of all.
        """

        def write(connection: sqlite3.Connection) -> None:
            if bodies:
                _store(connection, bodies)
            if moved:
                connection.execute(
                    "UPDATE calls SET state = 'moved' WHERE id = ? AND state != 'done'", (moved,)
                )
            connection.execute(_PUT, [getattr(call, name) for name in _FIELDS])

        waiting = _Waiting(write, asyncio.get_running_loop().create_future())
        self._queue.put(waiting)
        await waiting.done
        if waiting.error is not None:
            raise ModelFailed(
                "unreachable", f"the call cannot be recorded, so it is not made or given: {waiting.error}"
            )

    def close(self) -> None:
        """Write what waits, and release the file."""
        self._queue.put(None)
        self._thread.join()
        self._writer.close()
        super().close()

    def _work(self) -> None:
        while True:
            batch = [self._queue.get()]
            while len(batch) < _BATCH and not self._queue.empty():
                batch.append(self._queue.get())
            work = [waiting for waiting in batch if waiting is not None]
            if work:
                self._write(work)
                work[0].done.get_loop().call_soon_threadsafe(_release, work)
            if None in batch:
                return

    def _write(self, work: list[_Waiting]) -> None:
        if self._commit(work) is not None and len(work) > 1:
            for waiting in work:  # one that is too big must not take the others with it
                waiting.error = self._commit([waiting])

    def _commit(self, work: list[_Waiting]) -> Exception | None:
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            for waiting in work:
                waiting.write(self._writer)
            self._writer.execute("COMMIT")
        except (sqlite3.Error, ValueError, OverflowError) as error:
            # ValueError: a text that is no UTF-8, which must not end the one thread that writes
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            work[0].error = error
            return error
        for waiting in work:
            waiting.error = None
        return None


def _release(work: list[_Waiting]) -> None:
    for waiting in work:
        if not waiting.done.done():
            waiting.done.set_result(None)


def body_of(value: Json) -> tuple[str, bytes]:
    """A response as it is stored: its hash and its bytes."""
    content = canonical(value)
    return digest(content), content
