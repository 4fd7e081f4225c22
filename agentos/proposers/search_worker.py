"""The process that searches for repairs: ``python -m agentos.proposers.search_worker DESCRIPTOR``, as ``search_process`` starts it."""

from __future__ import annotations

import gc
import math
import os
import queue
import resource
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from agentos.benches import Bench, BenchResult
from agentos.domain import ResourceId, SearchEffort, Snapshot
from agentos.errors import Unavailable, lacking
from agentos.ports import Case, Proposal, Proposer
from agentos.proposers.harness_repair import HarnessRepairProposer
from agentos.proposers.repair.proposer import RepairProposer
from agentos.proposers.search_process import CaseTrace
from agentos.worker.children import allowed, memory_limits

_SPARE_S = 60.0  # of CPU time beyond the budget: for what it does before and after


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
        """See ``benches.Benches``."""
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
        """See ``benches.Bench``."""
        wanted = None if cases is None else tuple(cases)
        return self._daemon.ask("try", self._number, source, trace, wanted)  # type: ignore[no-any-return]

    def close(self) -> None:
        """See ``benches.Bench``."""
        self._daemon.ask("close", self._number)


def _serve(pipe: Connection) -> None:
    """Search for what the first message says."""
    daemon = _Daemon(pipe)
    sys.excepthook = partial(_tell_bug, daemon)
    kind, workers, memory_mb, kept, brief = pipe.recv()
    memory_limits(memory_mb)
    cpu_s = allowed(resource.RLIMIT_CPU, math.ceil(brief.budget_s * workers * 2 + _SPARE_S))
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
    if why := lacking(error):
        daemon.say("failed", why)
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
