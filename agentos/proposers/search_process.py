"""The search for repairs in a process of its own: what it parses, makes and ranks costs the daemon neither
memory nor time, and can be killed. It asks for everything else over one pair of sockets.

Its process gets no more of the environment than Python needs, grows by ``MEMORY_MB`` at most, and ends
when the daemon does. What tries candidates stays where it was: in boxes that the daemon opens. This is the daemon's
end, which imports nothing of what searches; ``search_worker`` is the other one.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, Protocol

from agentos.benches import Bench, Benches, BenchResult
from agentos.domain import Json, ResourceId, SearchEffort, Snapshot
from agentos.errors import Unavailable
from agentos.ports import Brief, Case, EarlierWork, Proposal

PATIENCE = 40.0  # times the budget of CPU time that may pass on the clock: others want the machine, too
MEMORY_MB = 400
_LATE_S = 120.0  # on the clock beyond the search's own bound, which a search keeps by itself
_KEPT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "PYTHONHASHSEED", "LD_LIBRARY_PATH")

Kind = Literal["tool", "harness"]


@dataclass(frozen=True, slots=True)
class CaseTrace:
    """What the harness as it is did on one case. ``lines``: those that ran, by registry path."""

    passed: bool
    output: Json
    lines: Mapping[str, tuple[int, ...]]
    wall_s: float


class HarnessBenches(Benches, Protocol):
    """Opens benches for files of a harness. A case stands for its task, whose agent names the harness."""

    def trace(
        self, snapshot: Snapshot, harness: ResourceId, cases: Sequence[Case], timeout_s: float
    ) -> Sequence[CaseTrace]:
        """Run each case on the snapshot as it is. Raises Unavailable when the machinery failed."""
        ...


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
        self._searched: dict[str, None] = {}
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="search")
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "agentos.proposers.search_worker", str(theirs.fileno())],
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
        files = tuple(self._searched)
        return SearchEffort(self._tried, self._tried, self._used_s, exhausted=False, files=files)

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
        self._searched[path] = None
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
