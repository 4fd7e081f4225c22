"""Boxes that do more than run a task: a bench for the search of repairs, the loading of tools, the
migration of memories."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from agentos.benches import Bench, BenchResult, error_of
from agentos.daemon.control.workers import Trust
from agentos.daemon.job.bundle import Tools, with_wheels
from agentos.domain import Json, Limits, Snapshot
from agentos.errors import BoxDied, HostAway, HostLost, Unavailable
from agentos.evolver.memory import MigrationResult
from agentos.messages import (
    FaultFrame,
    LoadDone,
    LoadJob,
    MigrateDone,
    MigrateJob,
    Ready,
    SearchJob,
    ToolCard,
    TriedFrame,
    TrySource,
)
from agentos.plugins.checks import sent
from agentos.ports import Case, Placement, Places, Sandbox
from agentos.resources import is_tool_file, tool_path
from agentos.sandboxes.box import Exchange

_SEARCH = Limits(wall_s=900.0, memory_mb=768, workspace_mb=128)
_LOAD = Limits(wall_s=30.0, memory_mb=512)
_MIGRATE = Limits(wall_s=30.0, memory_mb=512)
_MIGRATE_S, _MIGRATE_MB, _MIGRATE_BYTES = 10.0, 256, 4 << 20  # for the code of the harness itself
_GONE_MAX = 3  # times that a box may vanish under a migration before that is the migration's own fault
_START_S = 30.0
_SLACK_S = 5.0  # beyond what the cases may take: the box watches each case itself


class BoxBenches:
    """Implements ``benches.Benches``, each bench on the host with the least to do.

    With ``trust``, ``share`` of what workers answer is asked for again elsewhere: by a lie a search could lose the edit that it
    looks for, or one that would do as well. What it proposes is held against trials all the same.
    """

    def __init__(
        self, registry: Tools, places: Places, trust: Trust | None = None, share: float = 0.0
    ) -> None:
        self._registry = registry
        self._places, self._trust, self._share = places, trust, share

    def bench(self, snapshot: Snapshot, path: str, cases: Sequence[Case], timeout_s: float) -> Bench:
        """See ``benches.Benches``."""
        own = self._registry.files(snapshot, "/".join(path.split("/")[:2]))
        files = with_wheels(self._registry, own)
        called = cases[0].call.tool if cases else ""
        job = SearchJob(
            path=path,
            tool="" if path.endswith(".py") and is_tool_file(path) else tool_path(called, own),
            files=list(files),
            cases=[
                {
                    "args": dict(case.call.args),
                    "inputs": list(case.inputs),
                    "checks": list(sent(case.checks).wire),
                }
                for case in cases
            ],
            timeout_s=timeout_s,
            memory_mb=_SEARCH.memory_mb,
        )
        blobs = [*files.values(), *(content for case in cases for content in case.inputs.values())]

        def opened(avoid: frozenset[str]) -> _BoxBench:
            return _BoxBench(self._places, job, blobs, avoid)

        if self._trust is None:
            return opened(frozenset())
        return _CheckedBench(opened, self._trust, self._share)


class _BoxBench:
    """One sandbox at a time; a new one when a source took the last one down, or its host is gone."""

    def __init__(self, places: Places, job: SearchJob, blobs: Sequence[bytes], avoid: frozenset[str]) -> None:
        self._places, self._job, self._blobs, self._avoid = places, job, blobs, avoid
        self._held = ExitStack()
        self._exchange: Exchange | None = None
        self.host = ""
        self._start()

    def try_source(
        self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None
    ) -> BenchResult:
        """See ``benches.Bench``. Raises HostAway where one host after the other was lost under it.

        A box that is gone says nothing of the source, unless it is gone each time.
        """
        for _ in range(_GONE_MAX - 1):
            with contextlib.suppress(HostAway, BoxDied):
                return self._tried(source, trace, cases)
            self.close()
        return self._tried(source, trace, cases, last=True)

    def _tried(
        self, source: str, trace: bool, cases: Sequence[int] | None, *, last: bool = False
    ) -> BenchResult:
        count = len(self._job.cases) if cases is None else len(cases)
        exchange = self._exchange or self._start()
        most_s = _SLACK_S + count * (self._job.timeout_s + 0.5)
        exchange.extend(most_s)
        try:
            exchange.send(TrySource(source=source, trace=trace, cases=None if cases is None else list(cases)))
            answer, _ = exchange.receive({"tried": TriedFrame})
            if isinstance(answer, TriedFrame) and len(answer.passed) == len(answer.outputs) == count:
                lines = tuple(tuple(found) for found in answer.lines)
                passed, scores = tuple(answer.passed), tuple(answer.scores)
                raised, cpu_s = tuple(answer.raised), min(max(0.0, answer.cpu_s), most_s)
                return BenchResult(passed, scores, tuple(answer.outputs), lines, raised, cpu_s)
            said = answer.fault.message if isinstance(answer, FaultFrame) else "it left cases out"
        except BoxDied as error:
            if error.cause == "gone" and not last:
                raise
            said = str(error)
        self.close()
        lost = {"error": "died", "message": said}
        return BenchResult((False,) * count, (0.0,) * count, (lost,) * count, ((),) * count if trace else ())

    def close(self) -> None:
        """See ``benches.Bench``."""
        self._exchange = None
        self._held.close()

    def _start(self) -> Exchange:
        for _ in range(_GONE_MAX - 1):
            with contextlib.suppress(HostAway):
                return self._started()
        return self._started()

    def _started(self) -> Exchange:
        memory_mb = _SEARCH.memory_mb + _SEARCH.workspace_mb
        with ExitStack() as held:
            place = held.enter_context(self._places.place(Placement(memory_mb=memory_mb, avoid=self._avoid)))
            box = place.sandbox.open(_SEARCH, light=True, run="a search")
            held.callback(box.close)
            exchange = Exchange(box, _START_S)
            exchange.send(self._job, self._blobs)
            answer, _ = exchange.receive({"ready": Ready})
            if isinstance(answer, FaultFrame):
                raise Unavailable(f"the search could not begin: {answer.fault.message}")
            self._held, self._exchange, self.host = held.pop_all(), exchange, place.host
        return exchange


class _CheckedBench:
    """Some of what a worker answers is asked for again elsewhere; of one that is not believed nothing is taken."""

    def __init__(self, opened: Callable[[frozenset[str]], _BoxBench], trust: Trust, share: float) -> None:
        self._opened, self._trust, self._share = opened, trust, share
        self._bench = opened(frozenset())

    def try_source(
        self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None
    ) -> BenchResult:
        """See ``benches.Bench``. Raises HostLost where its worker is not believed: the search begins anew then."""
        bench = self._bench
        found = bench.try_source(source, trace=trace, cases=cases)
        host = bench.host
        if host and self._trust.is_chosen(self._share) and not any(map(_says_nothing, found.outputs)):
            with contextlib.suppress(HostAway):  # nobody else is there to ask
                self._ask_again(found.passed, host, source, cases)
        if why := self._trust.of(host) if host else "":
            raise HostLost(f"the worker {host} is distrusted: {why}")
        return found

    def close(self) -> None:
        """See ``benches.Bench``."""
        self._bench.close()

    def _ask_again(self, said: tuple[bool, ...], host: str, source: str, cases: Sequence[int] | None) -> None:
        """Distrust whoever stands alone against two. A tool that does not do alike twice on one host blames nobody."""

        def elsewhere(avoid: frozenset[str]) -> tuple[tuple[bool, ...], str]:
            with contextlib.closing(self._opened(avoid)) as bench:
                found = bench.try_source(source, cases=cases)
                if any(map(_says_nothing, found.outputs)):
                    raise HostAway("it says nothing")
                return found.passed, bench.host

        other, believed = elsewhere(frozenset({host}))
        if other == said or self._bench.try_source(source, cases=cases).passed != said:
            return
        if self._bench.host != host:  # it is gone, and another said the same
            return
        third, _ = elsewhere(frozenset({host, believed} - {""}))
        if third == said and believed:
            host, believed = believed, host
        elif third != other:
            return
        self._trust.distrust(
            host,
            f"in a search it says of the same source on the same calls other than {believed or 'this machine'} does, twice or "
            f"with another: revoke its token (`agentos token revoke {host}`), and look at the host",
        )


def _says_nothing(output: Json) -> bool:
    """How long something takes, and that a box is gone, is the host's matter."""
    return error_of(output) in ("timeout", "died")


def load_tools(
    sandbox: Sandbox, files: Mapping[str, bytes], tools: Sequence[str]
) -> tuple[list[ToolCard], list[str]]:
    """Import each tool in a box: the cards of those that loaded, one sentence for each fault.

    Raises Unavailable when the machinery failed.
    """
    with sandbox.open(_LOAD, light=True) as box:
        exchange = Exchange(box, _LOAD.wall_s)
        try:
            exchange.send(LoadJob(files=list(files), tools=list(tools)), list(files.values()))
            answer, _ = exchange.receive({"done": LoadDone})
        except BoxDied as error:
            if error.cause == "gone":
                raise
            return [], [f"its tools could not be loaded: {error}"]
    if isinstance(answer, FaultFrame):
        return [], [f"its tools could not be loaded: {answer.fault.message}"]
    assert isinstance(answer, LoadDone)
    return answer.tools, answer.faults


def migrate_memories(
    sandbox: Sandbox, files: Mapping[str, bytes], path: str, memories: Mapping[str, str]
) -> MigrationResult:
    """What ``migrate(memories)`` of the file ``path`` among ``files`` returns in a box; nothing of it is checked.

    Raises Unavailable when the machinery failed.
    """
    job = MigrateJob(
        path=path,
        files=list(files),
        memories=list(memories),
        wall_s=_MIGRATE_S,
        memory_mb=_MIGRATE_MB,
        output_bytes=_MIGRATE_BYTES,
    )
    blobs = [*files.values(), *(text.encode() for text in memories.values())]
    for _ in range(_GONE_MAX):
        with sandbox.open(_MIGRATE, light=True) as box:
            exchange = Exchange(box, _MIGRATE.wall_s)
            try:
                exchange.send(job, blobs)
                answer, _ = exchange.receive({"done": MigrateDone})
            except BoxDied as error:
                if error.cause == "gone":
                    continue
                return MigrationResult(fault=f"it took its box down: {error}")
        if isinstance(answer, FaultFrame):
            return MigrationResult(fault=answer.fault.message)
        assert isinstance(answer, MigrateDone)
        return MigrationResult(
            answer.output, f"{answer.fault.type}: {answer.fault.message}" if answer.fault else ""
        )
    return MigrationResult(fault=f"its box ended {_GONE_MAX} times without an answer")
