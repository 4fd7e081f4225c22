"""How the trials of all evolutions are made: as many at a time as there is room, each evolution in its turn; and some of
those that workers made again on other hosts, since a worker that lies, or is broken, gives other answers.

Only work that is steady can tell: what asked a model, a person or the outside is passed over, and so is what does not
end alike twice elsewhere. The machine of the daemon is believed; of workers, two that agree are believed against one.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar

import structlog

from agentos.daemon.job.bundle import Bundle, is_kernel_file
from agentos.daemon.requests.run_requests import AGAIN, calls_by_key
from agentos.domain import Effect, Mode, RecordedTool, Recording, Result, Snapshot, Step, Task, call_key
from agentos.errors import HostAway, HostLost, Unavailable
from agentos.evolver.history.recordings import asks, recorded_call
from agentos.messages import WHEELS
from agentos.ports import Attempt, Executor, Plan, Snapshots
from agentos.resources import tool_reference
from agentos.resources.declarations import declared

if TYPE_CHECKING:
    from agentos.daemon.control.workers import Trust

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


# --- what differs from the recording ---


def drift(
    snapshots: Snapshots, bundle: Bundle, recording: Recording, steps: Sequence[Step]
) -> tuple[str, ...]:
    """What came out differently from the recording although nothing that was edited explains it.

    One sentence for each tool: its own resource is the same in both snapshots, it got the same
    arguments, and it gave another result. What only reads may follow what an edit changed, so it
    is not held against the recording any more once the runs have parted for another reason.
    """
    recorded = calls_by_key(recording)
    asked: Counter[str] = Counter()
    found: dict[str, str] = {}
    parted = False
    for step in steps:
        call = recorded_call(step)
        if call is None:
            continue
        key, path = call_key(call.tool, call.args), str(step.action["path"])
        earlier = recorded.get(key, ())[asked[key] :]
        asked[key] += 1
        if not earlier:
            parted = True
            continue
        if _same_result(earlier[0], call):
            continue
        effects = declared(path, bundle.files.get(path, b"")).effects
        if not _same_resource(snapshots, recording.snapshot, bundle.files, path):
            parted = True
        elif effects <= AGAIN and (Effect.READ not in effects or not parted):
            what = " and ".join(sorted(effects))
            found.setdefault(
                path, f"{tool_reference(path)} ({what}) gave another result than the one on record"
            )
    return tuple(found.values())


def _same_result(one: RecordedTool, other: RecordedTool) -> bool:
    return bool(one.result == other.result and one.fault == other.fault)


def _same_resource(snapshots: Snapshots, recorded: Snapshot, files: Mapping[str, bytes], path: str) -> bool:
    """Whether the tool's resource is the same in the recording's snapshot as among these files.

    A snapshot that is gone cannot be compared, so nothing is held against it.
    """
    root = "/".join(path.split("/")[:2]) + "/"
    # What a lock stands for is no file of the registry; the lock itself is.
    here = {
        name: content
        for name, content in files.items()
        if name.startswith(root) and not name.startswith(f"{root}{WHEELS}/")
    }
    try:
        there = snapshots.files(recorded, root.rstrip("/"))
        return {path: content for path, content in there.items() if not is_kernel_file(path)} == here
    except Unavailable:
        return False
