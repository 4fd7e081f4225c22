"""The trials of all evolutions side by side: as many at a time as there is room, and each evolution in its turn."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

_TRIALS_MAX = 4096  # threads

T = TypeVar("T")
R = TypeVar("R")


class TrialPool:
    """Implements ``ports.Replayer``: a trial is mostly a wait for its box.

    Several that map at once take turns, however much each of them has to do; ``parallel`` jobs run at a time in all, a
    number that changes as workers come and go.
    """

    def __init__(self, parallel: Callable[[], int]) -> None:
        self._parallel = parallel
        self._pool = ThreadPoolExecutor(_TRIALS_MAX, thread_name_prefix="trial")  # made as they are needed
        self._changed = threading.Condition()
        self._waiting = deque[object]()  # one for each job that is to begin, in turn
        self._running = 0

    def map(self, work: Callable[[T], R], jobs: Sequence[T]) -> Sequence[R]:
        """See ``ports.Replayer``."""
        futures: list[Future[R]] = []
        going: set[Future[R]] = set()
        for job in jobs:
            # never more than fit at once: so whoever comes next need not wait until all of these are done
            if len(going) >= max(1, self._parallel()):
                going = wait(going, return_when=FIRST_COMPLETED).not_done
            futures.append(self._pool.submit(self._in_turn, work, job))
            going.add(futures[-1])
        wait(futures)
        return [future.result() for future in futures]

    def _in_turn(self, work: Callable[[T], R], job: T) -> R:
        mine = object()
        with self._changed:
            self._waiting.append(mine)
            self._changed.wait_for(
                lambda: self._waiting[0] is mine and self._running < max(1, self._parallel())
            )
            self._waiting.popleft()
            self._running += 1
            self._changed.notify_all()
        try:
            return work(job)
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()
