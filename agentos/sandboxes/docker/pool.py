"""Containers started ahead: making one takes the engine a fifth of a second and its imports as long.

The pool holds promises of containers by kind, oldest first: the oldest is the warmest. A container
leaves it once and never comes back.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, Protocol, TypeVar

from agentos.errors import Unavailable


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
