"""Boxes that do more than run a task: a bench for the search of repairs, the loading of tools, the
migration of memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentos.daemon.job.bundle import Tools, with_wheels
from agentos.daemon.job.job_protocol import Exchange
from agentos.domain import Limits, Snapshot
from agentos.errors import BoxDied, Unavailable
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
from agentos.ports import Bench, BenchResult, Box, Case, Sandbox
from agentos.resources import tool_path

_SEARCH = Limits(wall_s=900.0, memory_mb=768, workspace_mb=128)
_LOAD = Limits(wall_s=30.0, memory_mb=512)
_MIGRATE = Limits(wall_s=30.0, memory_mb=512)
_MIGRATE_S, _MIGRATE_MB, _MIGRATE_BYTES = 10.0, 256, 4 << 20  # for the code of the harness itself
_GONE_MAX = 3  # times that a box may vanish under a migration before that is the migration's own fault
_START_S = 30.0
_SLACK_S = 5.0  # beyond what the cases may take: the box watches each case itself


class BoxBenches:
    """Implements ``ports.Benches``."""

    def __init__(self, registry: Tools, sandbox: Sandbox) -> None:
        self._registry = registry
        self._sandbox = sandbox

    def bench(self, snapshot: Snapshot, path: str, cases: Sequence[Case], timeout_s: float) -> Bench:
        """See ``ports.Benches``."""
        own = self._registry.files(snapshot, "/".join(path.split("/")[:2]))
        files = with_wheels(self._registry, own)
        called = cases[0].call.tool if cases else ""
        job = SearchJob(
            path=path,
            tool="" if path.endswith(".py") else tool_path(called, own),
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
        inputs = [content for case in cases for content in case.inputs.values()]
        return _BoxBench(self._sandbox, job, [*files.values(), *inputs])


class _BoxBench:
    """One sandbox at a time; a new one when a source took the last one down."""

    def __init__(self, sandbox: Sandbox, job: SearchJob, blobs: Sequence[bytes]) -> None:
        self._sandbox = sandbox
        self._job = job
        self._blobs = blobs
        self._box: Box | None = None
        self._exchange = self._start()

    def try_source(
        self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None
    ) -> BenchResult:
        """See ``ports.Bench``."""
        count = len(self._job.cases) if cases is None else len(cases)
        if self._box is None:
            self._exchange = self._start()
        self._exchange.extend(_SLACK_S + count * (self._job.timeout_s + 0.5))
        try:
            self._exchange.send(
                TrySource(source=source, trace=trace, cases=None if cases is None else list(cases))
            )
            answer, _ = self._exchange.receive({"tried": TriedFrame})
            if isinstance(answer, TriedFrame) and len(answer.passed) == len(answer.outputs) == count:
                lines = tuple(tuple(found) for found in answer.lines)
                passed, scores = tuple(answer.passed), tuple(answer.scores)
                raised, cpu_s = tuple(answer.raised), max(0.0, answer.cpu_s)
                return BenchResult(passed, scores, tuple(answer.outputs), lines, raised, cpu_s)
            said = answer.fault.message if isinstance(answer, FaultFrame) else "it left cases out"
        except BoxDied as error:
            said = str(error)
        self.close()
        lost = {"error": "died", "message": said}
        return BenchResult((False,) * count, (0.0,) * count, (lost,) * count, ((),) * count if trace else ())

    def close(self) -> None:
        """See ``ports.Bench``."""
        box, self._box = self._box, None
        if box is not None:
            box.close()

    def _start(self) -> Exchange:
        self._box = self._sandbox.open(_SEARCH, light=True)
        exchange = Exchange(self._box, _START_S)
        try:
            exchange.send(self._job, self._blobs)
            answer, _ = exchange.receive({"ready": Ready})
        except BoxDied:
            self.close()
            raise
        if isinstance(answer, FaultFrame):
            self.close()
            raise Unavailable(f"the search could not begin: {answer.fault.message}")
        return exchange


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
