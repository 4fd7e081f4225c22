"""DBOS under the evolutions: what was begun is brought to its end, also after a kill.

A workflow's id is the id of what it works on, so that starting it twice is starting it once.
Workflow bodies are tiny and lie outside of what evolves, and the application version is pinned:
by default DBOS derives it from the source of the workflows and would orphan them at each release.
Workflows are started directly when a slot is free instead of through a DBOS queue, because polling
a queue often enough to start tasks quickly costs more than the whole idle daemon may
(docs/decisions/talk-through-the-ledger.md). Tasks run on threads beside DBOS, which has nothing to remember of
them: how far a task came stands in the ledger, and the next daemon goes on from there.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy
import structlog
from dbos import DBOS, DBOSConfig, SetWorkflowID, _workflow_commands
from dbos._error import DBOSWorkflowIDInUseError

from agentos.errors import Unavailable

os.environ.setdefault("LANGSMITH_TRACING", "false")

T = TypeVar("T")

log = structlog.get_logger("agentos.engine")

VERSION = "abi-4"  # raise when a workflow's steps change their order or meaning (tests/daemon/test_engine.py)
# The kinds of work: a workflow of DBOS each, but for RUN, which is a thread.
RUN, EVOLVE, PROMOTE, WATCH = "run_task", "evolve", "finish_promotion", "watch"
FRESH, SETTLE = "try_fresh", "settle_overtaken"

_ALIVE = ("PENDING", "ENQUEUED", "DELAYED")
_OVER = ("SUCCESS", "ERROR", "CANCELLED")
_AT_ONCE = 1_000  # workflows that are forgotten in one go
_REST_S = 60.0  # between two looks of DBOS for what is queued, delayed or late, where nothing can be
_THREADS_MAX = 4_096  # of work that is not durable; one is made where none is idle


class Steps:
    """``ports.Durable`` within a workflow."""

    def step(self, name: str, work: Callable[[], T]) -> T:
        """See ``ports.Durable``."""
        return DBOS.run_step({"name": name}, work)

    def sleep(self, seconds: float) -> None:
        """A pause that a restart does not begin again."""
        DBOS.sleep(seconds)


class Engine:
    """One durable engine in a process. ``bodies`` maps a kind of workflow to its body.

    It lies in the file ``path``, or where ``address`` names a PostgreSQL database, there in a schema of its own; then
    nothing is written any more once another process leads than that of ``term`` (0: nobody asks).
    """

    def __init__(
        self,
        path: Path,
        bodies: Mapping[str, Callable[[Steps, str], None]],
        on_end: Callable[[str, str], None],
        address: str = "",
        term: int = 0,
    ) -> None:
        self._on_end = on_end
        self._lock = threading.Lock()
        self._starting: dict[str, str] = {}  # kind by subject, until its body begins
        self._active: dict[str, str] = {}
        self._threads = ThreadPoolExecutor(_THREADS_MAX, thread_name_prefix="work")
        self._failed: set[str] = set()  # the engine may not have been able to write down that they ended
        self.failures: dict[str, BaseException] = {}  # why the last workflow on a subject failed
        self._place = address or str(path)
        self._fenced = bool(term)
        if not address:
            _look_at(path)
        self._database = _database_at(address, term) if address else _database(path)
        config: DBOSConfig = {
            "name": "agentos",
            "system_database_url": address or str(_url(path)),
            "system_database_engine": self._database,
            "application_version": VERSION,
            "executor_id": "local",
            "enable_otlp": False,
            "log_level": "ERROR",
            "notification_listener_polling_interval_sec": 2.0,
            "scheduler_polling_interval_sec": 3600.0,
        }
        if address:
            config["use_listen_notify"] = False  # nothing of ours waits for a message
        # In PostgreSQL a lock is held meanwhile, which may not be held for so long.
        _workflow_commands._BACKGROUND_JOBS_INTERVAL_SEC = 1.0 if address else _REST_S
        self._dbos = DBOS(config=config)
        self._workflows = {kind: self._workflow(kind, body) for kind, body in bodies.items()}

    def _workflow(self, kind: str, body: Callable[[Steps, str], None]) -> Callable[[str], None]:
        @DBOS.workflow(name=kind, max_recovery_attempts=None)
        def workflow(subject: str) -> None:
            def noted() -> None:
                try:
                    body(Steps(), subject)
                finally:
                    if sys.exception() is not None:
                        self._failed.add(DBOS.workflow_id or subject)

            with self._lock:
                self._active[subject] = kind
                self._starting.pop(subject, None)
            self._work(kind, subject, noted)

        return workflow

    def _work(self, kind: str, subject: str, body: Callable[[], None]) -> None:
        """Do it, and say at its end that nobody does any more; raises what ``body`` does."""
        try:
            body()
        finally:
            if (error := sys.exception()) is not None:
                log.error("workflow failed", kind=kind, subject=subject, exc_info=error)
                self.failures[subject] = error
            with self._lock:
                self._active.pop(subject, None)
            self._on_end(kind, subject)

    def launch(self) -> None:
        """Begin; workflows that a dead process left are taken up again. Raises Unavailable.

        Of another version only their subjects are: what had been done is in the ledger, and ``start`` begins
        them anew.
        """
        try:
            DBOS.launch()
            if self._fenced:
                with self._database.begin() as connection:
                    connection.exec_driver_sql("SELECT agentos_control.fence_engine()")
            alive = DBOS.list_workflows(status=list(_ALIVE), load_input=False, load_output=False)
            others = [item.workflow_id for item in alive if item.app_version != VERSION]
            if others:
                DBOS.delete_workflows(others)
            # Only recovery puts anything into its queue.
            nothing_to_recover = len(others) == len(alive)
            if nothing_to_recover:
                self._dbos._registry.get_internal_queue()._polling_interval_sec = _REST_S
        except (sqlalchemy.exc.SQLAlchemyError, sqlite3.Error) as error:
            raise _unusable(self._place, error) from error

    def start(self, kind: str, subject: str, workflow_id: str | None = None) -> bool:
        """Start the workflow on ``subject`` unless it was started before.

        False when an earlier one of this id has ended: nothing will happen to the subject any more.
        """
        workflow_id = workflow_id or subject
        with self._lock:
            self._starting[subject] = kind
        started = False
        try:
            # Asked whether there is one by beginning it: a statement less, and the costliest.
            with SetWorkflowID(workflow_id, workflow_id_reuse_policy="reject"):
                DBOS.start_workflow(self._workflows[kind], subject)
            started = True
        except DBOSWorkflowIDInUseError as error:
            return error.workflow_status in _ALIVE and workflow_id not in self._failed
        finally:
            if not started:  # or nothing would ever be started for this subject again
                with self._lock:
                    self._starting.pop(subject, None)
        return True

    def begin(self, kind: str, subject: str, body: Callable[[], None]) -> None:
        """Work on ``subject`` now, on a thread, unless somebody does; nothing of it is kept.

        For work that goes on from a record of its own when it is begun again, which the caller does after a
        kill. Raises RuntimeError where no thread can be made.
        """
        with self._lock:
            if subject in self._starting or subject in self._active:
                return
            self._starting[subject] = kind
        try:
            self._threads.submit(self._begin, kind, subject, body)
        except RuntimeError:
            with self._lock:
                self._starting.pop(subject, None)
            raise

    def _begin(self, kind: str, subject: str, body: Callable[[], None]) -> None:
        with self._lock:
            if self._starting.pop(subject, None) is None:
                return  # no thread could be made for it, and another one found it in the queue
            self._active[subject] = kind
        self._work(kind, subject, body)

    def active(self, kind: str) -> list[str]:
        """Subjects of this kind that are being worked on."""
        with self._lock:
            return [subject for subject, of in {**self._starting, **self._active}.items() if of == kind]

    def forget(self, ended_before: datetime) -> int:
        """Remove what is kept of workflows that ended before then; how many. They could be started anew."""
        ended = DBOS.list_workflows(
            status=list(_OVER),
            completed_before=ended_before.isoformat(),
            limit=_AT_ONCE,
            load_input=False,
            load_output=False,
        )
        if ended:
            DBOS.delete_workflows([workflow.workflow_id for workflow in ended])
        return len(ended)

    def close(self) -> None:
        """Release the database; what is under way is resumed by the next launch."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        DBOS.destroy(destroy_registry=True)
        self._database.dispose()


def _look_at(path: Path) -> None:
    """Before DBOS does, which would print a traceback for a damaged file."""
    if not path.exists():  # SQLite would make it, and leave it empty where the daemon goes no further
        return
    try:
        with closing(sqlite3.connect(path)) as connection:
            (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if answer != "ok":
            raise sqlite3.DatabaseError(" ".join(str(answer).split())[:200])
    except sqlite3.Error as error:
        raise _unusable(str(path), error) from error


def _unusable(place: str, error: Exception) -> Unavailable:
    cause = getattr(error, "orig", None) or error
    if not place.startswith("/"):
        return Unavailable(
            f"the engine's tables in {place} cannot be used ({cause}): see that the server runs"
        )
    return Unavailable(
        f"the engine's database {place} cannot be used ({cause}): if the disk is not full, move the file "
        "away; what was under way then begins again from the ledger"
    )


def _url(path: Path) -> sqlalchemy.URL:
    """Never by a text, which would end at a ``?`` of the path, and take ``%41`` for an A."""
    return sqlalchemy.URL.create("sqlite", database=str(path))


def _database(path: Path) -> sqlalchemy.Engine:
    """DBOS' own engine leaves SQLite in rollback mode, which is three times slower."""
    engine = sqlalchemy.create_engine(_url(path), connect_args={"timeout": 30.0})

    @sqlalchemy.event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _record: Any) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if sqlite3.sqlite_version_info < (3, 42):
            # Tables that DBOS made under Python 3.12 or later call unixepoch('subsec'), which is NULL there.
            connection.create_function("unixepoch", 1, lambda _: round(time.time(), 3))

    return engine


def _database_at(address: str, term: int) -> sqlalchemy.Engine:
    """Connections for as many workflows as may run; one that the server dropped is replaced before it is used."""
    from agentos.ledger.postgres.connection import OPEN_MS, TERM

    url = sqlalchemy.make_url(address).set(drivername="postgresql+psycopg")
    own = {"options": f"-c {TERM}={term:d} -c idle_in_transaction_session_timeout={OPEN_MS}"} if term else {}
    return sqlalchemy.create_engine(url, pool_size=8, max_overflow=56, pool_pre_ping=True, connect_args=own)
