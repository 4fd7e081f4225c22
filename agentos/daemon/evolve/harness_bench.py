"""A bench for files of a harness: each case is a whole run of its task, driven by the edited harness.

Every run has boxes of its own, so a source is tried as slowly as a task runs; what passes is a
suspicion all the same. Nothing is asked of models or of the outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from agentos.benches import Bench, BenchResult
from agentos.domain import (
    Json,
    KernelFault,
    Kind,
    Mode,
    ResourceId,
    Result,
    Snapshot,
    Step,
    Task,
    kind_of,
    new_id,
)
from agentos.errors import BoxDied
from agentos.evolver.safety_probes import ExecutorWith
from agentos.ports import Case, Executor, Plan, Snapshots
from agentos.proposers.search_process import CaseTrace

_LINES = "lines"  # the node of the step that tells them
_ASIDE = "traced_harness"  # the name that the harness' own first file gets while it is traced

# Stands in for harness.py: runs it, and tells which lines in functions of the harness' files ran. (Code of
# modules and classes, which runs on import, is not "optimized".) A harness that ends the tracing tells less.
_TRACING = f'''
import inspect
import sys
import threading

FOLDER = __file__.rpartition("/")[0] + "/"
ran = {{}}


def tracer(frame, event, arg):
    name = frame.f_code.co_filename
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED or not name.startswith(FOLDER) or name == __file__:
        return None
    lines = ran.setdefault(name[len(FOLDER):], set())
    lines.add(frame.f_lineno)

    def local(frame, event, arg):
        lines.add(frame.f_lineno)
        return local

    return local


def run(sdk):
    threading.settrace(tracer)
    sys.settrace(tracer)
    try:
        import {_ASIDE}

        {_ASIDE}.run(sdk)
    finally:
        sys.settrace(None)
        threading.settrace(None)
        sdk.step("{_LINES}", None, {{name: sorted(lines) for name, lines in ran.items()}})
'''


class RunBenches:
    """Implements ``search_process.HarnessBenches``. ``task_of`` finds the task that a case is made of."""

    def __init__(
        self,
        snapshots: Snapshots,
        task_of: Callable[[str], Task],
        executor_with: ExecutorWith,
        parallel: int,
    ) -> None:
        self._snapshots = snapshots
        self._task_of = task_of
        self._executor_with = executor_with
        self._parallel = max(1, parallel)

    def bench(self, snapshot: Snapshot, path: str, cases: Sequence[Case], timeout_s: float) -> Bench:
        """See ``benches.Benches``. There is no trace here: ``trace`` does that for all files at once."""
        return _RunBench(self._executor_with, snapshot, path, self._tasks(cases), timeout_s)

    def trace(
        self, snapshot: Snapshot, harness: ResourceId, cases: Sequence[Case], timeout_s: float
    ) -> Sequence[CaseTrace]:
        """See ``search_process.HarnessBenches``."""
        start = f"{harness}/{Kind.HARNESS.value}.py"
        own = self._snapshots.files(snapshot, start)
        beside = {f"{harness}/{_ASIDE}.py": own[start], start: _TRACING.encode()} if start in own else {}
        executor = self._executor_with(beside, frozenset())

        def traced(task: Task) -> CaseTrace:
            # the tracing takes a step of its own
            roomy = replace(task, limits=replace(task.limits, steps=task.limits.steps + 1))
            done = _execute(executor, roomy, snapshot, timeout_s)
            lines = _lines(harness, start, done.steps)
            return CaseTrace(done.passed, done.output, lines, done.wall_s)

        with ThreadPoolExecutor(self._parallel) as pool:
            return list(pool.map(traced, self._tasks(cases)))

    def _tasks(self, cases: Sequence[Case]) -> list[Task]:
        return [replace(self._task_of(case.task_id), call=case.call, checks=case.checks) for case in cases]


# Served from a record that does not exist: a run that asks for anything fails, and reaches nothing.
_PLAN = Plan(mode=Mode.REPLAY, evolution_id="bench")


@dataclass(frozen=True, slots=True)
class _RunBench:
    executor_with: ExecutorWith
    snapshot: Snapshot
    path: str
    tasks: Sequence[Task]
    timeout_s: float

    def try_source(
        self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None
    ) -> BenchResult:
        """See ``benches.Bench``."""
        executor = self.executor_with({self.path: source.encode()}, frozenset())
        chosen = self.tasks if cases is None else [self.tasks[number] for number in cases]
        done = [_execute(executor, task, self.snapshot, self.timeout_s) for task in chosen]
        return BenchResult(
            tuple(each.passed for each in done),
            tuple(float(each.passed) for each in done),
            tuple(each.output for each in done),
            ((),) * len(done) if trace else (),
            cpu_s=sum(each.cpu_s for each in done),
        )

    def close(self) -> None:
        """See ``benches.Bench``: each run ended its own box."""


@dataclass(frozen=True, slots=True)
class _Done:
    passed: bool
    output: Json  # as a bench of tools tells it: the answer, or the error that there is instead
    wall_s: float = 0.0
    steps: Sequence[Step] = ()
    cpu_s: float = 0.0


def _execute(executor: Executor, task: Task, snapshot: Snapshot, timeout_s: float) -> _Done:
    """One run, ended from outside when it takes longer. A box that an edited harness takes down is the edit's fault; what else is away is not."""
    try:
        done = executor.execute(task, snapshot, new_id("bench"), plan=replace(_PLAN, wall_s=timeout_s))
    except BoxDied as error:
        return _Done(passed=False, output={"error": "died", "message": str(error)})
    outcome = done.outcome
    wall_s = outcome.cost.wall_s
    cpu_s = outcome.cost.cpu_s or wall_s  # without control groups nobody measures
    wrong = kind_of(outcome.fault) is KernelFault.CHECK
    if outcome.result is not Result.PASSED and not wrong:
        kind = outcome.fault.type if outcome.fault else outcome.result.value
        told = {"error": kind, "message": outcome.reason}
        return _Done(passed=False, output=told, wall_s=wall_s, steps=done.steps, cpu_s=cpu_s)
    passed = outcome.result is Result.PASSED
    return _Done(passed, done.answer, wall_s, done.steps, cpu_s)


def _lines(harness: ResourceId, start: str, steps: Sequence[Step]) -> Mapping[str, tuple[int, ...]]:
    told: object = next((step.observation for step in reversed(steps) if step.node == _LINES), {})
    if not isinstance(told, Mapping):
        return {}
    return {
        start if name == f"{_ASIDE}.py" else f"{harness}/{name}": tuple(lines)
        for name, lines in told.items()
        if isinstance(lines, list | tuple) and all(isinstance(line, int) for line in lines)
    }
