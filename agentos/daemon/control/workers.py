"""Workers as the daemon knows them: who may join, who gets no work any more, and what is told of them.

What is told lies in ``run/workers.json``, for ``agentos cluster status`` to read without asking anybody.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agentos.daemon.control.tokens import TokenScope, known_token, still_stands, tokens
from agentos.domain import Trial
from agentos.errors import ErrorKind, UserError, missing_extra
from agentos.home import Home
from agentos.plaintext import clean
from agentos.sandboxes.choice import Choice, PlacesHere

if TYPE_CHECKING:
    from agentos.ledger.store import Ledger
    from agentos.ports import Places
    from agentos.sandboxes.remote.box import Admission, WorkerState
    from agentos.sandboxes.remote.fleet import Fleet
    from agentos.sandboxes.remote.protocol import Hello
    from agentos.settings import Settings

DISTRUSTED = "workers.distrusted"  # memo in the ledger: name of the worker -> why
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_EVERY_S, _OLD_S = 1.0, 15.0


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker for people; times are ISO, UTC. ``state`` is works, held, distrusted or absent; ``why`` says what to type."""

    name: str
    state: str
    why: str = ""
    address: str = ""
    since: str = ""
    host: str = ""
    sandbox: str = ""
    image: str = ""
    machine: str = ""
    labels: tuple[str, ...] = ()
    cores: int = 0
    memory_mb: int = 0
    boxes: int = 0
    load: float = 0.0
    runs: tuple[tuple[str, str], ...] = ()  # what its boxes are for, and since when


@dataclass(frozen=True, slots=True)
class ClusterView:
    """``listens``: where workers join, "" where no daemon listens."""

    listens: str = ""
    at: str = ""
    here: int = 0
    workers: tuple[WorkerView, ...] = ()


@dataclass
class WorkerHost:
    """What of the daemon deals with workers; ``room`` is how many runs fit at a time, over all hosts."""

    places: Places
    room: Callable[[], int]
    fleet: Fleet | None = None
    trust: Trust | None = None
    _told: Told | None = field(default=None)

    def is_empty(self) -> bool:
        """Whether no host is there for any box."""
        return self.room() == 0

    def close(self) -> None:
        """Hang up on all workers."""
        if self.fleet is not None:
            self.fleet.close()

    def tell(self) -> None:
        """Say how they do, at most once a second."""
        if self._told is not None and self.fleet is not None:
            self._told.tell(self.fleet.states())


class Trust:
    """Which workers gave other answers than others did. Kept in the ledger, by name: that name is not trusted again."""

    def __init__(self, ledger: Ledger, searches: Path | None = None) -> None:
        """``searches``: the folder with what searches have noted, which one that is not believed may have told them."""
        self.salt = secrets.token_bytes(16)
        self._ledger, self._searches = ledger, searches
        self._lock = threading.Lock()
        self._known: dict[str, str] = dict(ledger.get_kv(DISTRUSTED, {}) or {})

    def of(self, name: str) -> str:
        """Why the worker gets no work and its trials count for nothing, "" where they do."""
        return self._known.get(name, "")

    def is_chosen(self, share: float) -> bool:
        """Whether an answer to a search is among the share that is asked for again; nobody can foresee it."""
        return secrets.randbelow(1 << 32) < share * (1 << 32)

    def distrust(self, name: str, why: str) -> None:
        """From now on; on record, with the evolutions that it measured some of. Searches forget what they have noted."""
        with self._lock:
            if name in self._known:
                return
            self._known = {**self._known, name: why}
            self._ledger.set_kv(DISTRUSTED, self._known)
        for noted in self._searches.iterdir() if self._searches and self._searches.is_dir() else ():
            noted.unlink(missing_ok=True)
        measured = sorted({trial.evolution_id for trial in self._ledger.find(Trial, host=name)})
        self._ledger.note("worker.distrusted", name, {"why": why, "evolutions": [*measured]})


class Told:
    """Writes ``run/workers.json``."""

    def __init__(self, home: Home, listens: str, here: int, trust: Trust) -> None:
        self._path, self._listens, self._here, self._trust = home.run / "workers.json", listens, here, trust
        self._next = 0.0

    def tell(self, states: tuple[WorkerState, ...]) -> None:
        """A disk that does not take it is passed over."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY_S
        now = datetime.now(UTC).isoformat(timespec="seconds")
        view = ClusterView(self._listens, now, self._here, tuple(map(self._view, states)))
        aside = self._path.with_suffix(".tmp")
        with suppress(OSError):
            aside.write_text(json.dumps(asdict(view)))
            aside.replace(self._path)

    def _view(self, state: WorkerState) -> WorkerView:
        hello = state.hello
        kind = "works" if not state.unwanted else "distrusted" if self._trust.of(state.name) else "held"
        return WorkerView(
            state.name, kind, state.unwanted, state.address, state.since.isoformat(timespec="seconds"),
            clean(hello.host), clean(hello.sandbox), clean(hello.image), clean(hello.machine), hello.labels,
            hello.cores, hello.memory_mb, hello.boxes, state.load, state.runs,
        )  # fmt: skip


def cluster_view(home: Home) -> ClusterView:
    """How the workers of a home do, also those that have a token and are not there."""
    said = ClusterView()
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads((home.run / "workers.json").read_text())
        workers = tuple(
            WorkerView(**one | {"labels": tuple(one["labels"]), "runs": tuple(map(tuple, one["runs"]))})
            for one in found["workers"]
        )
        if (datetime.now(UTC) - datetime.fromisoformat(found["at"])).total_seconds() < _OLD_S:
            said = ClusterView(found["listens"], found["at"], int(found["here"]), workers)
    there = {worker.name for worker in said.workers}
    why = (
        "it is not joined: `agentos worker --join URL` on its host"
        if said.listens
        else "no daemon listens for it"
    )
    away = [
        WorkerView(token.name, "absent", why)
        for token in tokens(home)
        if TokenScope.WORK in token.scopes and token.name not in there
    ]
    return ClusterView(said.listens, said.at, said.here, (*said.workers, *away))


def _admission(home: Home, text: str) -> Admission | None:
    from agentos.sandboxes.remote.box import Admission

    token = known_token(home, text)
    return Admission(token.name, token.id) if token and TokenScope.WORK in token.scopes else None


@contextmanager
def workers_of(
    home: Home, settings: Settings, choice: Choice, ledger: Ledger, *, listens: bool
) -> Iterator[WorkerHost]:
    """What deals with workers; it ``listens`` where the settings say so. Raises UserError for settings that would let others read along."""
    mine = settings.workers
    if not (listens and mine.listen):
        yield WorkerHost(PlacesHere(choice, choice), lambda: settings.parallel)
        return
    address, port = mine.address
    if address not in _LOOPBACK and not (mine.certificate and mine.key):
        raise UserError(
            f"`workers.listen` is {mine.listen}, and without `workers.certificate` and `workers.key` everybody on the "
            "way could read tokens and runs: name both, or listen on 127.0.0.1 (docs/use/cluster.md)."
        )
    try:
        from agentos.sandboxes.remote.fleet import Door, Fleet
        from agentos.sandboxes.remote.places import WorkerPlaces, unwanted
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("agentos"):
            raise
        raise UserError(missing_extra("workers", "`workers.listen`"), kind=ErrorKind.NOT_INSTALLED) from None
    trust = Trust(ledger, home.searches)

    def why_not(admission: Admission, hello: Hello) -> str:
        return trust.of(admission.name) or unwanted(choice, hello.sandbox, hello.image)

    fleet = Fleet(
        Door(
            address,
            port,
            lambda text: _admission(home, text),
            lambda admission: still_stands(home, admission.name, admission.id),
            why_not,
            Path(os.path.expanduser(mine.certificate)) if mine.certificate else None,
            Path(os.path.expanduser(mine.key)) if mine.key else None,
            mine.lost_s,
        )
    )
    here = settings.parallel if mine.here is None else mine.here
    places = WorkerPlaces(choice, fleet, here)
    bound = fleet.start()
    (home.run).mkdir(parents=True, exist_ok=True)
    note = home.run / "workers.json"
    try:
        scheme = "https" if mine.certificate else "http"
        told = Told(home, f"{scheme}://{f'[{address}]' if ':' in address else address}:{bound}", here, trust)
        yield WorkerHost(places, lambda: places.room, fleet, trust, told)
    finally:
        fleet.close()
        with suppress(OSError):
            os.unlink(note)
