"""The Docker adapter of the Sandbox port: every box a container of its own, taken from a warm pool.

See docs/use/docker.md for what is promised beyond docs/understand/security.md. How a container is asked for is
``docker_profile.py``; its life, ``docker_container.py``; what stands ready, ``docker_pool.py``.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from agentos.domain import Limits
from agentos.errors import ErrorKind, Unavailable
from agentos.sandboxes.box import BoxLimits, WorkerBox, box_limits
from agentos.sandboxes.docker.container import Container, ContainerMaker, End
from agentos.sandboxes.docker.engine import DockerEngine
from agentos.sandboxes.docker.image import digest_of, find
from agentos.sandboxes.docker.profile import ContainerProfile, ProfileKind
from agentos.sandboxes.owner import BOXES, Owner
from agentos.sandboxes.probe import Guarantee, probe, refusal

ENTRY = "agentos.worker.job:serve"


@dataclass(frozen=True, slots=True)
class _Works:
    """What stands once the sandbox has been used."""

    engine: DockerEngine
    image: str
    end: End
    maker: ContainerMaker
    pool: ContainerPool[ProfileKind, Container]
    extras: BoxLimits


class Docker:
    """Boxes in containers, without network, without host files.

    ``home`` labels what is made in the engine and holds the socket directories. ``entry`` and
    ``extra`` are as in ``Bubblewrap``. ``ready`` containers are kept warm for each of
    the kinds asked for most of late; by default one for each core. ``image`` is the one to use when it is
    not to be found out (which reads the installed libraries).

    Constructing costs nothing and does not need an engine; the first ``open`` (or ``start``) does.
    """

    name = "docker"
    reaches = "container"
    lacks = ""
    weak: frozenset[str] = frozenset()  # walls that a test goes without: it is used without being probed then

    def __init__(
        self,
        home: Path,
        *,
        entry: str = ENTRY,
        extra: tuple[Path, ...] = (),
        ready: int | None = None,
        image: str | None = None,
    ) -> None:
        self.level = "unprobed"
        self._home = home
        self._entry = entry
        self._extra = extra
        self._image = image
        self._ready = (os.cpu_count() or 1) if ready is None else ready
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._works: _Works | None = None
        self._closed = False

    @property
    def image(self) -> str:
        """A digest of the image's content. Raises Unavailable where there is none."""
        return self._working().image

    def open(self, limits: Limits, *, light: bool = False, run: str = "") -> WorkerBox:
        """A fresh box under these limits. Raises Unavailable with what to install or enable."""
        self.start()
        return self.open_entry(limits, self._entry, light=light, run=run)

    def start(self) -> None:
        """Find the engine and the image and probe a box, unless that is done. Raises Unavailable."""
        with self._starting:
            if self.level != "unprobed":
                return
            if self.weak:
                self.level = "weak"
                return
            if why := refusal(self.examine()):
                self.close()
                raise Unavailable(f"docker: {why}")
            self.level = self.reaches

    def examine(self) -> tuple[Guarantee, ...]:
        """Try every promise once; the claims say what held."""
        works = self._working()

        def cold(limits: Limits, entry: str) -> WorkerBox:
            """Not from the pool, which is to be filled with what jobs ask for."""
            container = works.maker.make(ProfileKind.of(limits, entry, light=True))
            return container.hand_over(limits, time.monotonic(), works.extras.grace_s)

        return probe(cold, grouped=True)

    def open_entry(self, limits: Limits, entry: str, *, light: bool = False, run: str = "") -> WorkerBox:
        """As ``open``, with another program inside."""
        began = time.monotonic()
        works = self._working()
        for last_try in (False, True):
            container = works.pool.take(ProfileKind.of(limits, entry, light=light))
            try:
                container.note(run)
                return container.hand_over(limits, began, works.extras.grace_s, run)
            except Unavailable:  # it stood for a while, and the engine may have ended it
                if last_try:
                    raise
        raise AssertionError("the loop returns or raises")

    def close(self) -> None:
        """End the pool and wait until every container that was made is gone; idempotent."""
        with self._lock:
            self._closed = True
            works, self._works = self._works, None
        if works is not None:
            works.pool.close()
            works.end.close()
            works.engine.close()

    def __enter__(self) -> Docker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _working(self) -> _Works:
        with self._lock:
            if self._closed:
                raise Unavailable("the sandbox is closed", kind=ErrorKind.CLOSED)
            if self._works is None:
                engine = DockerEngine()
                try:
                    name = self._image or find(engine)
                    image = digest_of(engine, name)
                    walls = ContainerProfile(name, box_limits(), self._extra, self.weak)
                except Unavailable:
                    engine.close()
                    raise
                places = self._home / BOXES
                places.mkdir(mode=0o700, parents=True, exist_ok=True)
                end = End(engine, max(1, self._ready))
                maker = ContainerMaker(end, walls, Owner.here(self._home), places)
                self._works = _Works(
                    engine, image, end, maker, ContainerPool(maker.make, self._ready), walls.extras
                )
            return self._works


# --- Containers started ahead: making one takes the engine a fifth of a second and its imports as long
# The pool holds promises of containers by kind, oldest first: the oldest is the warmest. A container
# leaves it once and never comes back.


class ReadyContainer(Protocol):
    """What lies in the pool."""

    def usable(self) -> bool:
        """Whether it still waits for its hand-over."""
        ...

    def discard(self) -> None:
        """End it unused."""
        ...


_LATE = 16  # how many of the last askings count

R = TypeVar("R", bound=ReadyContainer)
K = TypeVar("K")


class ContainerPool(Generic[K, R]):
    """``ready`` of each of the ``kinds`` asked for most of late, made by as many threads."""

    def __init__(self, make: Callable[[K], R], ready: int, kinds: int = 2) -> None:
        self._make = make
        self._ready = ready
        self._kinds = kinds
        self._makers = ThreadPoolExecutor(max(1, ready), thread_name_prefix="container")
        self._lock = threading.Lock()
        self._waiting: dict[K, deque[Future[R]]] = {}
        self._asked: deque[K] = deque(maxlen=_LATE)
        self._closed = False

    def take(self, kind: K) -> R:
        """One that nobody had before; raises Unavailable when none can be made."""
        while True:
            with self._lock:
                waiting = self._waiting.get(kind)
                ahead = waiting.popleft() if waiting else None
            if ahead is None:
                break
            try:
                made = ahead.result()
            except Unavailable:
                continue  # it failed some time ago; what holds now shows when one is made now
            if made.usable():
                self.warm(kind)
                return made
            made.discard()
        made = self._make(kind)
        self.warm(kind)
        return made

    def warm(self, kind: K) -> None:
        """See to it that this kind is on its way, if it is one of those asked for most."""
        if self._ready == 0:
            return
        old: deque[Future[R]] = deque()
        with self._lock:
            if self._closed:
                return
            self._asked.append(kind)
            if kind not in self._waiting:
                if len(self._waiting) == self._kinds:
                    rarest = min(self._waiting, key=self._asked.count)
                    if self._asked.count(rarest) >= self._asked.count(kind):
                        return
                    old = self._waiting.pop(rarest)
                self._waiting[kind] = deque()
            waiting = self._waiting[kind]
            while len(waiting) < self._ready:
                waiting.append(self._makers.submit(self._make, kind))
        for future in old:
            if not future.cancel():
                future.add_done_callback(_discard)

    def close(self) -> None:
        """Discard what nobody took, and wait for what is being made."""
        with self._lock:
            self._closed = True
            futures = [future for waiting in self._waiting.values() for future in waiting]
            self._waiting.clear()
        for future in futures:
            if not future.cancel():
                future.add_done_callback(_discard)
        self._makers.shutdown()


def _discard(future: Future[R]) -> None:
    if not future.cancelled() and future.exception() is None:
        future.result().discard()
