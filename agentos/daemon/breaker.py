"""A circuit breaker over the queue: whether a run was lost by its task's own fault or by the machinery.

A task that is lost again and again is given up; a machine that loses whatever it is given is waited for. They
are told apart by a probe of the machinery (a box, the disk, the ledger, descriptors) and by how many different
tasks were lost since one came to its end. While the breaker is open no task is started and no loss is counted.
Several bad tasks together look like a bad machine: a loss that nothing explains is a task's own fault once it was
lost so ``OWN_LOSSES`` times, with others that came to their end meanwhile, or ``ALONE_LOSSES`` times without.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy.exc
import structlog

import agentos
from agentos.daemon.upkeep.status import ROOM_BYTES, ROOM_FILES
from agentos.domain import EvolutionWait, Limits
from agentos.errors import AgentOSError, BudgetUsedUp, ModelAway, ModelMissing, Unavailable, lacking
from agentos.home import Home
from agentos.ledger.blobs import GONE
from agentos.ledger.store import Ledger
from agentos.ports import Sandbox
from agentos.registry.store import Registry

# What is raised where the machine itself fails under us; nothing of a task is among it.
MACHINE = (OSError, MemoryError, sqlite3.Error, sqlalchemy.exc.SQLAlchemyError)

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_PAUSES_S = (1.0, 5.0, 15.0, 30.0, 60.0)  # between probes; the last one on and on
OWN_LOSSES, ALONE_LOSSES = 5, 30  # of one task, with a probe after each that found nothing wrong
_ROOM_DESCRIPTORS = 16  # below which no run is begun
_DIFFERENT = 2  # tasks that are lost, with none that came to its end between them

_PROGRAM = Path(agentos.__file__)
_RELEASE = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)

log = structlog.get_logger("agentos.breaker")


@dataclass(frozen=True, slots=True)
class QueuePause:
    """Why no task is started. ``for_good``: until a person did something and started the daemon anew."""

    why: str
    since: datetime
    for_good: bool = False


class Breaker:
    """Thread-safe. ``probe`` tries the machinery and raises what is wrong with it."""

    def __init__(self, probe: Callable[[], None] = lambda: None) -> None:
        self._probe = probe
        self.has_losses = False  # since when ``worked`` has something to set right
        self._lock = threading.Lock()
        self._lost: set[str] = set()
        self._unexplained: dict[str, tuple[int, int]] = {}  # by task: losses, and ``_ended`` at the first one
        self._ended = 0  # tasks that came to their end
        self._pause: QueuePause | None = None
        self._openings = 0  # since a task came to its end
        self._again_at = 0.0

    @property
    def pause(self) -> QueuePause | None:
        """None while tasks are started."""
        return self._pause

    def lost(self, task_id: str, error: BaseException) -> bool:
        """A run of the task was lost; whether the machinery is away, so that it counts for nothing."""
        why = cause(error)
        if damaged(error):
            self.open(why, for_good=True)
        if self._pause is not None:
            return True
        if not of_the_machine(error):
            fault = self._fault()
            with self._lock:
                self.has_losses = True
                if not fault and self._is_its_own(task_id):
                    return False
                self._lost.add(task_id)
                if not fault and len(self._lost) < _DIFFERENT:
                    return False
            why = fault or why
        self.open(why)
        return True

    def _is_its_own(self, task_id: str) -> bool:
        """Count a loss that nothing explains; whether there were too many for a fault of the machinery."""
        losses, ended = self._unexplained.get(task_id, (0, self._ended))
        self._unexplained[task_id] = losses + 1, ended
        return losses >= (OWN_LOSSES if self._ended > ended else ALONE_LOSSES)

    def worked(self, task_id: str = "") -> None:
        """A task came to its end: whatever was lost before was not lost by all."""
        with self._lock:
            self._lost.clear()
            self._openings = 0
            self._ended += 1
            self._unexplained.pop(task_id, None)
            self.has_losses = bool(self._unexplained)

    def forget(self, task_id: str) -> None:
        """The task was given up."""
        with self._lock:
            self._unexplained.pop(task_id, None)

    def open(self, why: str, *, for_good: bool = False) -> None:
        """Start nothing until a probe finds nothing wrong (``for_good``: in this life of the daemon)."""
        with self._lock:
            if self._pause is not None and (self._pause.for_good or not for_good):
                return
            self._pause = QueuePause(why, datetime.now(UTC), for_good)
            self._again_at = time.monotonic() + _PAUSES_S[min(self._openings, len(_PAUSES_S) - 1)]
            self._openings += 1
            self.has_losses = True
        log.error("queue pauses", why=why)

    def due(self, now: float) -> bool:
        """Whether to ``try_again``; ``now`` is on the monotonic clock."""
        pause = self._pause
        return pause is not None and not pause.for_good and now >= self._again_at

    def try_again(self) -> None:
        """Probe; when nothing is wrong the queue goes on."""
        fault = self._fault()
        with self._lock:
            pause = self._pause
            if pause is None or pause.for_good:
                return
            if fault:
                self._pause = QueuePause(fault, pause.since)
                self._openings += 1
                self.has_losses = True
                self._again_at = time.monotonic() + _PAUSES_S[min(self._openings, len(_PAUSES_S)) - 1]
                return
            self._pause = None
        log.info("queue goes on")

    def hold(self, wait: Callable[[float], None]) -> None:
        """Returns when tasks may be tried; ``wait`` lets seconds pass."""
        while self._pause is not None:
            wait(0.2)

    def _fault(self) -> str:
        if why := replaced():
            return why
        try:
            self._probe()
        except (AgentOSError, RuntimeError, *MACHINE) as error:
            return cause(error)
        return ""


def probe(home: Home, ledger: Ledger, registry: Registry, sandbox: Sandbox) -> None:
    """Whether a run could be made and recorded now. Raises Unavailable or OSError with what is in its way."""
    disk = os.statvfs(home.root)
    if disk.f_bavail * disk.f_frsize < ROOM_BYTES:
        raise Unavailable(
            f"the disk of {home.root} has {disk.f_bavail * disk.f_frsize >> 20} MB left: free some space"
        )
    if disk.f_files and disk.f_favail < ROOM_FILES:
        raise Unavailable(f"the disk of {home.root} takes {disk.f_favail} more files: remove some")
    if ledger.blobs.is_gone:
        raise Unavailable(f"{home.blobs}: {GONE}")
    spare: list[int] = []
    try:
        spare.extend(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(_ROOM_DESCRIPTORS))
    finally:
        for descriptor in spare:
            os.close(descriptor)
    ledger.set_kv("machinery.probe", datetime.now(UTC).isoformat())
    registry.stable()
    with sandbox.open(Limits(), light=True):
        pass


def replaced(program: Path = _PROGRAM) -> str:
    """Why this process is to begin nothing more, "" while the files of its program are of its own release.

    What it and its boxes import once they are not would be a mixture of two.
    """
    try:
        found = _RELEASE.search(program.read_text())
    except FileNotFoundError:
        found = None
    except OSError:  # no descriptor is left to look with, say
        return ""
    release = found[1] if found else ""
    if release == agentos.__version__:
        return ""
    what = f"agentos {release} was installed" if release else "the program was removed"
    return (
        f"{what} while this daemon, of {agentos.__version__}, works: type "
        "`agentos daemon stop && agentos daemon start` (or `systemctl restart agentos`)"
    )


def of_the_machine(error: BaseException) -> bool:
    """Whether it says so itself: no room, no descriptors, no memory. Looks below what it was raised from."""
    own = MemoryError | sqlite3.Error | sqlalchemy.exc.SQLAlchemyError
    return any(isinstance(one, own) or lacking(one) for one in _below(error))


def damaged(error: BaseException) -> bool:
    """Whether SQLite found a page that is no page: more of the same helps nobody."""
    return any((getattr(one, "sqlite_errorcode", None) or 0) & 0xFF in _DAMAGE for one in _below(error))


def awaited(error: Unavailable) -> EvolutionWait:
    """What the error says is not there."""
    if isinstance(error, BudgetUsedUp):
        return EvolutionWait.BUDGET
    return EvolutionWait.MODEL if isinstance(error, ModelAway) else EvolutionWait.MACHINERY


def given_up(evolution_id: str, error: AgentOSError, models_s: float) -> str:
    """Why an evolution ended without a result, and what to type; ``models_s`` is how long it waits for a model."""
    if not isinstance(error, ModelAway):
        return str(error)
    if isinstance(error, ModelMissing):
        return f"{error}; when that is settled, type `agentos evolution retry {evolution_id}`"
    back = "`agentos model test` says that it answers"
    if isinstance(error, BudgetUsedUp):
        back = "it is raised, or after midnight UTC"
    waited = f"after {models_s:g} s ([wait] models_s in policy.toml)"
    return f"{error}; given up {waited}. When {back}, type `agentos evolution retry {evolution_id}`"


def cause(error: BaseException) -> str:
    """What is wrong, as a sentence that says what to do where that is known."""
    for one in _below(error):
        if said := lacking(one):
            return said
    if isinstance(error, Unavailable | OSError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _below(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it was raised from."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__
