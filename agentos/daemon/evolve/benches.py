"""Boxes that do more than run a task: a bench for the search of repairs, the loading of tools, the
migration of memories."""

from __future__ import annotations

import contextlib
import json
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
# Bytes of all contents of a search: a frame holds 256 MB, a box 768 with the files laid out.
_BLOBS_MAX = 192 << 20
# Cases for one frame: their outputs, each as large as one may be shown, have room in its header.
_AT_ONCE = 48
_LOST_MAX = 8  # boxes that a try may lose before what is left of it is asked for once more, and not halved
_OWN_FAULT = ("memory", "output", "protocol")  # why a box ends that would end again
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
            timeout_s=timeout_s,
            memory_mb=_SEARCH.memory_mb,
        )
        contents: dict[bytes, int] = {}  # most cases differ from others in one file
        wire = [
            {
                "args": dict(case.call.args),
                "inputs": {
                    name: contents.setdefault(content, len(contents)) for name, content in case.inputs.items()
                },
                "checks": [check.model_dump() for check in sent(case.checks).wire],
            }
            for case in cases
        ]
        blobs = [*files.values(), json.dumps(wire).encode(), *contents]

        def opened(avoid: frozenset[str]) -> _BoxBench:
            return _BoxBench(self._places, job, blobs, len(cases), avoid)

        if self._trust is None:
            return opened(frozenset())
        return _CheckedBench(opened, self._trust, self._share)


class _BoxBench:
    """One sandbox at a time; a new one when a source took the last one down, or its host is gone."""

    def __init__(
        self, places: Places, job: SearchJob, blobs: Sequence[bytes], count: int, avoid: frozenset[str]
    ) -> None:
        self._places, self._job, self._blobs, self._count, self._avoid = places, job, blobs, count, avoid
        self._held = ExitStack()
        self._exchange: Exchange | None = None
        self.host = ""
        self._too_large = ""
        if (size := sum(map(len, blobs))) > _BLOBS_MAX:
            self._too_large = f"its inputs have {size >> 20} MB together, {_BLOBS_MAX >> 20} are allowed"
            return
        try:
            self._start()
        except BoxDied as error:
            if error.cause not in _OWN_FAULT:
                raise
            self._too_large = str(error)

    def try_source(
        self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None
    ) -> BenchResult:
        """See ``benches.Bench``. Raises HostAway where one host after the other was lost under it.

        A box that is gone says nothing of the source, unless it is gone each time. Each frame asks for as many cases as
        it has room for; where a box ends under several, the halves of them are asked for, so that one case takes no
        other with it. Of cases that no box holds each has died.
        """
        numbers = [*(range(self._count) if cases is None else cases)]
        parts = [numbers[start : start + _AT_ONCE] for start in range(0, len(numbers), _AT_ONCE)] or [[]]
        found, lost = list[BenchResult](), 0
        while parts:
            part = parts.pop(0)
            result = self._patiently(source, trace, part, 1 if lost else _GONE_MAX)
            if len(part) > 1 and lost < _LOST_MAX and all(map(_is_lost, result.outputs)):
                lost += 1
                parts[:0] = [part[: len(part) // 2], part[len(part) // 2 :]]
            else:
                found.append(result)
        return _joined(found)

    def _patiently(self, source: str, trace: bool, cases: Sequence[int], times: int) -> BenchResult:
        if self._too_large:
            return _lost(self._too_large, len(cases), trace=trace)
        for _ in range(times - 1):
            with contextlib.suppress(HostAway, BoxDied):
                return self._tried(source, trace, cases)
            self.close()
        return self._tried(source, trace, cases, last=True)

    def _tried(self, source: str, trace: bool, cases: Sequence[int], *, last: bool = False) -> BenchResult:
        count = len(cases)
        exchange = self._exchange or self._start()
        most_s = _SLACK_S + count * (self._job.timeout_s + 0.5)
        exchange.extend(most_s)
        try:
            exchange.send(TrySource(source=source, trace=trace, cases=[*cases]))
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
        return _lost(said, count, trace=trace)

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


def _lost(why: str, count: int, *, trace: bool) -> BenchResult:
    lost = {"error": "died", "message": why}
    none = (0,) * count if trace else ()
    return BenchResult(
        (False,) * count, (0.0,) * count, (lost,) * count, ((),) * count if trace else (), none
    )


def _is_lost(output: Json) -> bool:
    return error_of(output) in ("died", "protocol")


def _joined(found: Sequence[BenchResult]) -> BenchResult:
    """What one source did on the cases of all of them."""
    if len(found) == 1:
        return found[0]
    return BenchResult(
        tuple(item for each in found for item in each.passed),
        tuple(item for each in found for item in each.scores),
        tuple(item for each in found for item in each.outputs),
        tuple(item for each in found for item in each.lines),
        tuple(item for each in found for item in each.raised),
        sum(each.cpu_s for each in found),
    )


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
