"""A bench for files of a harness: each case is a whole run of its task, driven by the edited harness.

Every run has boxes of its own, so a source is tried as slowly as a task runs; what passes is a
suspicion all the same. Nothing is asked of models or of the outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from agentos.domain import Json, Kind, Mode, Outcome, ResourceId, Result, Snapshot, Step, Task, new_id
from agentos.errors import BoxDied
from agentos.evolver.guards.probes import ExecutorWith
from agentos.evolver.proposers.harness_repair import Traced
from agentos.ports import Attempt, Bench, Case, Plan, Snapshots, Tried

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
    """Implements ``harness_repair.HarnessBenches``. ``task_of`` finds the task that a case is made of."""

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
        """See ``ports.Benches``. There is no trace here: ``trace`` does that for all files at once."""
        return _RunBench(self._executor_with, snapshot, path, self._tasks(cases, timeout_s))

    def trace(
        self, snapshot: Snapshot, harness: ResourceId, cases: Sequence[Case], timeout_s: float
    ) -> Sequence[Traced]:
        """See ``harness_repair.HarnessBenches``."""
        start = f"{harness}/{Kind.HARNESS.value}.py"
        own = self._snapshots.files(snapshot, start)
        beside = {f"{harness}/{_ASIDE}.py": own[start], start: _TRACING.encode()} if start in own else {}
        executor = self._executor_with(beside, frozenset())

        def traced(task: Task) -> Traced:
            # the tracing takes a step of its own
            roomy = replace(task, limits=replace(task.limits, steps=task.limits.steps + 1))
            done = _attempt(lambda: executor.execute(roomy, snapshot, new_id("bench"), plan=_PLAN))
            wall_s = done.outcome.cost.wall_s
            return Traced(_passed(done), _output(done), _lines(harness, start, done.steps), wall_s)

        with ThreadPoolExecutor(self._parallel) as pool:
            return list(pool.map(traced, self._tasks(cases, timeout_s)))

    def _tasks(self, cases: Sequence[Case], timeout_s: float) -> list[Task]:
        tasks = []
        for case in cases:
            task = self._task_of(case.task_id)
            limits = replace(task.limits, wall_s=min(task.limits.wall_s, timeout_s))
            tasks.append(replace(task, call=case.call, checks=case.checks, limits=limits))
        return tasks


# Served from a record that does not exist: a run that asks for anything fails, and reaches nothing.
_PLAN = Plan(mode=Mode.REPLAY, evolution_id="bench")


@dataclass(frozen=True, slots=True)
class _RunBench:
    executor_with: ExecutorWith
    snapshot: Snapshot
    path: str
    tasks: Sequence[Task]

    def try_source(self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None) -> Tried:
        """See ``ports.Bench``."""
        executor = self.executor_with({self.path: source.encode()}, frozenset())
        chosen = self.tasks if cases is None else [self.tasks[number] for number in cases]

        def tried(task: Task) -> Attempt:
            return _attempt(lambda: executor.execute(task, self.snapshot, new_id("bench"), plan=_PLAN))

        done = [tried(task) for task in chosen]
        return Tried(
            tuple(map(_passed, done)),
            tuple(each.outcome.score for each in done),
            tuple(map(_output, done)),
            ((),) * len(done) if trace else (),
        )

    def close(self) -> None:
        """See ``ports.Bench``: each run ended its own box."""


def _attempt(execute: Callable[[], Attempt]) -> Attempt:
    """A box that an edited harness takes down is the edit's fault; what else is away is not."""
    try:
        return execute()
    except BoxDied as error:
        return Attempt(Outcome(Result.FAILED, 0.0, str(error)), None, "", (), (), "", "")


def _passed(done: Attempt) -> bool:
    return done.outcome.result is Result.PASSED


def _output(done: Attempt) -> Json:
    """As a bench of tools tells it: the answer, or the error that there is instead."""
    outcome = done.outcome
    if outcome.result is Result.PASSED or (outcome.fault is not None and outcome.fault.type == "check"):
        return done.answer
    kind = outcome.fault.type if outcome.fault else outcome.result.value
    return {"error": kind, "message": outcome.reason}


def _lines(harness: ResourceId, start: str, steps: Sequence[Step]) -> Mapping[str, tuple[int, ...]]:
    told: object = next((step.observation for step in reversed(steps) if step.node == _LINES), {})
    if not isinstance(told, Mapping):
        return {}
    return {
        start if name == f"{_ASIDE}.py" else f"{harness}/{name}": tuple(lines)
        for name, lines in told.items()
        if isinstance(lines, list | tuple) and all(isinstance(line, int) for line in lines)
    }
