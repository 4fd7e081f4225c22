"""The search for repairs in a process of its own: what it parses, makes and ranks costs the daemon neither
memory nor time, and can be killed. It asks for everything else over one pair of sockets.

Its process gets no more of the environment than Python needs, grows by ``MEMORY_MB`` at most, and ends
when the daemon does. What tries candidates stays where it was: in boxes that the daemon opens.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import queue
import resource
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from agentos.domain import ResourceId, SearchEffort, Snapshot
from agentos.errors import Unavailable
from agentos.ports import Bench, Benches, BenchResult, Brief, Case, EarlierWork, Proposal, Proposer
from agentos.proposers.harness_repair import CaseTrace, HarnessBenches, HarnessRepairProposer
from agentos.proposers.repair import RepairProposer
from agentos.proposers.repair.proposer import PATIENCE
from agentos.worker.children import memory_limits

MEMORY_MB = 400
_LATE_S = 120.0  # on the clock beyond the search's own bound, which a search keeps by itself
_SPARE_S = 60.0  # of CPU time beyond the budget: for what it does before and after
_KEPT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "PYTHONHASHSEED", "LD_LIBRARY_PATH")

Kind = Literal["tool", "harness"]


class SearchProcess:
    """Implements ``ports.Proposer`` by ``RepairProposer`` or ``HarnessRepairProposer`` in a process for each brief."""

    name = "repair"

    def __init__(
        self,
        kind: Kind,
        benches: Benches | HarnessBenches,
        workers: int,
        memory_mb: int = MEMORY_MB,
        kept: Path | None = None,
    ) -> None:
        """Below ``kept`` the search of a tool notes what it has tried: the process may write there."""
        self._kind = kind
        self._benches = benches
        self._workers = max(1, workers)
        self._memory_mb = memory_mb
        self._kept = kept

    def propose(self, brief: Brief) -> Generator[Proposal, None, SearchEffort | None]:
        """As the proposer inside; where its process ended early, what it had proposed, and how far it came.

        Raises Unavailable when a bench is gone, RuntimeError when the search itself broke.
        """
        small = replace(brief, runs=(), parents=(), memories=(), wished=(), successes=(), earlier=EarlierWork)
        with _Child(self._benches, self._workers) as child:
            child.send((self._kind, self._workers, self._memory_mb, self._kept, small))
            return (yield from child.proposals(time.monotonic() + _LATE_S + PATIENCE * brief.budget_s))


class _Child:
    """The daemon's end: does what the process asks for, and hands on what it proposes."""

    def __init__(self, benches: Benches | HarnessBenches, workers: int) -> None:
        self._benches = benches
        self._opened: dict[int, Bench] = {}
        self._error: BaseException | None = None
        self._sending = threading.Lock()
        self._tried, self._used_s = 0, 0.0
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="search")
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "agentos.proposers.search_process", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env={
                    **{name: os.environ[name] for name in _KEPT if name in os.environ},
                    "MALLOC_ARENA_MAX": "2",
                },
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # a Ctrl-C is for the daemon
            )
        self._pipe = Connection(ours.detach())

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill it, and close every bench that it left open."""
        self._process.kill()
        self._process.wait()
        self._pool.shutdown()
        self._pipe.close()
        for bench in self._opened.values():
            bench.close()

    def send(self, message: object) -> None:
        with self._sending, contextlib.suppress(OSError):  # it has ended: so says what is read next
            self._pipe.send(message)

    def proposals(self, deadline: float) -> Generator[Proposal, None, SearchEffort | None]:
        """What the process proposes until it ends: by itself, for too much memory or CPU time, or at the deadline."""
        while True:
            try:
                late = not self._pipe.poll(max(0.0, deadline - time.monotonic()))
                said: tuple[Any, ...] = ("end", self._cut_short()) if late else self._pipe.recv()
            except (EOFError, OSError):
                said = ("end", self._cut_short())
            kind, *rest = said
            if kind == "call":
                self._answer(*rest)
            elif kind == "proposal":
                given = time.monotonic()
                yield rest[0]
                deadline += time.monotonic() - given  # what is done with it is not the search's time
            elif kind == "end":
                return rest[0]  # type: ignore[no-any-return]  # as the process says
            elif kind == "broke":
                raise RuntimeError(rest[0])
            else:
                raise self._error or Unavailable(f"the search ended by itself: {rest[0]}")

    def _cut_short(self) -> SearchEffort:
        return SearchEffort(self._tried, self._tried, self._used_s, exhausted=False)

    def _answer(self, number: int, what: str, arguments: tuple[Any, ...]) -> None:
        doing = self._pool.submit(getattr(self, f"_{what}"), *arguments)
        doing.add_done_callback(partial(self._done, number))

    def _done(self, number: int, doing: Future[Any]) -> None:
        error = doing.exception()
        if error is not None:
            self._error = error  # raised again where the proposals are read
        self.send((number, error is None, str(error) if error else doing.result()))

    def _open(self, snapshot: Snapshot, path: str, cases: Sequence[Case], timeout_s: float) -> int:
        bench = self._benches.bench(snapshot, path, cases, timeout_s)
        number = id(bench)
        self._opened[number] = bench
        return number

    def _try(self, bench: int, source: str, trace: bool, cases: Sequence[int] | None) -> BenchResult:
        result = self._opened[bench].try_source(source, trace=trace, cases=cases)
        self._tried += 1
        self._used_s += result.cpu_s
        return result

    def _close(self, bench: int) -> None:
        self._opened.pop(bench).close()

    def _trace(self, *arguments: Any) -> Sequence[CaseTrace]:
        return self._benches.trace(*arguments)  # type: ignore[union-attr]  # asked by the proposer for a harness


# --- in the process ---------------------------------------------------------------------------


class _Daemon:
    """The process's end: implements ``HarnessBenches`` by asking the daemon, from any thread."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self._number = 0
        self._waiting: dict[int, queue.SimpleQueue[tuple[bool, Any]]] = {}

    def listen(self) -> None:
        """Hand out the answers until the daemon is gone; then there is nothing to search for."""
        try:
            while True:
                number, *answer = self._pipe.recv()
                self._waiting.pop(number).put((answer[0], answer[1]))
        except (EOFError, OSError):
            os._exit(1)

    def say(self, *message: object) -> None:
        with self._lock:
            self._pipe.send(message)

    def ask(self, what: str, *arguments: object) -> Any:
        answer: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        with self._lock:
            self._number += 1
            self._waiting[self._number] = answer
            self._pipe.send(("call", self._number, what, arguments))
        good, said = answer.get()
        if not good:
            raise Unavailable(said)
        return said

    def bench(self, snapshot: Snapshot, path: str, cases: Sequence[Case], timeout_s: float) -> Bench:
        """See ``ports.Benches``."""
        return _AskedBench(self, self.ask("open", snapshot, path, tuple(cases), timeout_s))

    def trace(
        self, snapshot: Snapshot, harness: ResourceId, cases: Sequence[Case], timeout_s: float
    ) -> Sequence[CaseTrace]:
        """See ``HarnessBenches``."""
        return self.ask("trace", snapshot, harness, tuple(cases), timeout_s)  # type: ignore[no-any-return]


class _AskedBench:
    """A bench that the daemon holds."""

    def __init__(self, daemon: _Daemon, number: int) -> None:
        self._daemon = daemon
        self._number = number

    def try_source(
        self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None
    ) -> BenchResult:
        """See ``ports.Bench``."""
        wanted = None if cases is None else tuple(cases)
        return self._daemon.ask("try", self._number, source, trace, wanted)  # type: ignore[no-any-return]

    def close(self) -> None:
        """See ``ports.Bench``."""
        self._daemon.ask("close", self._number)


def _serve(pipe: Connection) -> None:
    """Search for what the first message says."""
    daemon = _Daemon(pipe)
    sys.excepthook = partial(_tell_bug, daemon)
    kind, workers, memory_mb, kept, brief = pipe.recv()
    memory_limits(memory_mb)
    cpu_s = math.ceil(brief.budget_s * workers * 2 + _SPARE_S)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.freeze()
    gc.set_threshold(100_000)  # a tree of a long file is many objects, and no garbage
    threading.Thread(target=daemon.listen, daemon=True).start()
    proposer: Proposer = HarnessRepairProposer(daemon, workers)
    if kind == "tool":
        proposer = RepairProposer(daemon, workers, kept=kept)
    try:
        end = _hand_on(daemon, iter(proposer.propose(brief)))
    except MemoryError:
        os._exit(1)  # as if it had been killed: there may be no room for more words
    except Unavailable as error:
        daemon.say("failed", str(error))
    else:
        daemon.say("end", end)


def _tell_bug(
    daemon: _Daemon, kind: type[BaseException], error: BaseException, where: TracebackType | None
) -> None:
    """Raised again in the daemon, which says whose bug it is; that it has gone is none."""
    if issubclass(kind, (EOFError, ConnectionError)):
        return
    traceback.print_exception(kind, error, where)
    daemon.say("broke", f"{kind.__name__}: {error}")


def _hand_on(daemon: _Daemon, proposals: Iterator[Proposal]) -> SearchEffort | None:
    """Say each proposal; what the generator returns."""
    while True:
        try:
            daemon.say("proposal", next(proposals))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


if __name__ == "__main__":
    _serve(Connection(int(sys.argv[1])))
    os._exit(0)
