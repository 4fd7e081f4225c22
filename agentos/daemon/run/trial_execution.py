"""How the trials of all evolutions are made: as many at a time as there is room, each evolution in its turn; and some of
those that workers made again on other hosts, since a worker that lies, or is broken, gives other answers.

Only work that is steady can tell: what asked a model, a person or the outside is passed over, and so is what does not
end alike twice elsewhere. The machine of the daemon is believed; of workers, two that agree are believed against one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TypeVar

import structlog

from agentos.daemon.control.workers import Trust
from agentos.domain import Mode, Result, Snapshot, Step, Task
from agentos.errors import HostAway, HostLost
from agentos.evolver.history.recordings import asks
from agentos.ports import Attempt, Executor, Plan

_SAYS_NOTHING = frozenset(
    {Result.INFRA, Result.CANCELLED, Result.WAITING, Result.NOT_REPLAYABLE, Result.TIMEOUT}
)

_TRIALS_MAX = 4096  # threads

T = TypeVar("T")
R = TypeVar("R")

log = structlog.get_logger("agentos.workers")


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


@dataclass(frozen=True, slots=True)
class SpotCheckedExecutor:
    """Implements ``ports.Executor``: ``share`` of the trials that ``inner`` made on workers are made again elsewhere.

    Trials are what an evolution asks for, what is served from a record, and with ``every`` all else.
    """

    inner: Executor
    trust: Trust
    share: float
    every: bool = False

    def execute(
        self,
        task: Task,
        snapshot: Snapshot,
        run_id: str,
        on_step: Callable[[Step], None] | None = None,
        plan: Plan | None = None,
    ) -> Attempt:
        """See ``ports.Executor``. Raises HostLost where it shows that the worker gives other answers than others."""
        done = self.inner.execute(task, snapshot, run_id, on_step, plan)
        plan = plan or Plan()
        is_trial = self.every or plan.evolution_id or plan.mode is Mode.REPLAY
        if not is_trial or not done.host or not self._is_chosen(run_id):
            return done
        if done.outcome.result in _SAYS_NOTHING or asks(done.steps):
            return done
        try:
            liar, believed = self._liar(lambda avoid: self._again(task, snapshot, run_id, plan, avoid), done)
        except HostAway:  # nobody else is there to make it again
            return done
        if liar is None:
            return done
        why = (
            f"of trial {run_id} it says {_what(liar)}, and {believed.host or 'this machine'}, twice or with another, "
            f"{_what(believed)}: revoke its token (`agentos token revoke {liar.host}`), and look at the host"
        )
        log.error("a worker is distrusted", worker=liar.host, why=why)
        self.trust.distrust(liar.host, why)
        if liar is done:
            raise HostLost(f"the worker {liar.host} is distrusted: {why}")
        return done

    def given(self, task: Task, snapshot: Snapshot) -> str:
        """See ``ports.Executor``."""
        return self.inner.given(task, snapshot)

    def _is_chosen(self, run_id: str) -> bool:
        """Not to be foreseen by a worker, which knows the id: it goes by a secret of this process too."""
        drawn = int.from_bytes(sha256(self.trust.salt + run_id.encode()).digest()[:8], "big")
        return drawn < self.share * (1 << 64)

    def _again(
        self, task: Task, snapshot: Snapshot, run_id: str, plan: Plan, avoid: frozenset[str]
    ) -> Attempt:
        return self.inner.execute(task, snapshot, run_id, plan=replace(plan, pair="", avoid=avoid))

    def _liar(
        self, again: Callable[[frozenset[str]], Attempt], done: Attempt
    ) -> tuple[Attempt | None, Attempt]:
        """The attempt that stands alone against two, and one of these; None where all is well, or nothing can be told."""
        other = again(frozenset({done.host}))
        if _same(done, other) or other.outcome.result in _SAYS_NOTHING:
            return None, other
        avoid = frozenset({done.host, other.host} - {""})
        third = again(avoid)
        if _same(other, third):
            return done, other
        return (other, third) if _same(done, third) and other.host else (None, other)


def _same(one: Attempt, other: Attempt) -> bool:
    return (one.outcome.result, one.answer_sha256) == (other.outcome.result, other.answer_sha256)


def _what(done: Attempt) -> str:
    return f"'{done.outcome.result.value}' with the answer {done.answer_sha256[:12]}"
