"""Runs a task once: bundle, box, steps, grade. Implements ``ports.Executor``.

Every way in which a run can end is mapped here to an ``Outcome``, except those that say nothing of
the task: then ``Unavailable`` is raised and the run is void.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from agentos.daemon.bundle import Bundle, Tools, Unfit, asked_sandbox, bundle_of
from agentos.daemon.exchange import Exchange
from agentos.daemon.grading import Grade, grade
from agentos.domain import Cost, Fault, Json, Limits, Outcome, Result, Snapshot, Step, Task, digest
from agentos.errors import BoxDied, NotFound, Unavailable
from agentos.messages import FaultFrame, RunDone, RunJob, StepFrame, WireFault
from agentos.ports import Attempt, Blobs, Box, Plan, Sandbox
from agentos.sandboxes.plainfiles import FileLimits, read_tar

GONE_MAX = 3  # times in a row that a worker may vanish before that is the task's own fault

_RESULT = {"answered": Result.PASSED, "failed": Result.FAILED, "limit": Result.BUDGET}
_DEATH = {
    "wall": (Result.TIMEOUT, "timeout", "the run did not end within {limits.wall_s:g} s"),
    "memory": (Result.BUDGET, "memory", "the run used more than {limits.memory_mb} MB of memory"),
    "output": (Result.BUDGET, "limit", "the run sent more than it may: {detail}"),
    "protocol": (Result.FAILED, "harness", "the worker broke the protocol: {detail}"),
    "killed": (Result.CANCELLED, "killed", "the run was cancelled"),
    "gone": (Result.FAILED, "exit", "the worker's process ended before its job, several times in a row"),
}


@dataclass(frozen=True, slots=True)
class _Job:
    """One run to do."""

    task: Task
    snapshot: Snapshot
    run_id: str
    bundle: Bundle
    inputs: Mapping[str, bytes]
    record: Callable[[Step], None]

    @property
    def limits(self) -> Limits:
        return self.bundle.limits


@dataclass(frozen=True, slots=True)
class _Ran:
    """What came out of the run's box."""

    result: Result
    fault: Fault | None = None
    answer: Json = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    resources: tuple[str, ...] = ()
    cpu_s: float = 0.0


class BoxExecutor:
    """Implements ``ports.Executor``. Thread-safe: any number of runs at a time."""

    def __init__(
        self,
        registry: Tools,
        blobs: Blobs,
        sandbox: Sandbox,
        choose: Callable[[str, str], Sandbox] | None = None,
    ) -> None:
        self._registry = registry
        self._blobs = blobs
        self._choose = choose or (lambda asked, prefer: sandbox)
        self._lock = threading.Lock()
        self._open: dict[str, Box] = {}
        self._cancelled: set[str] = set()
        self._gone: Counter[tuple[str, str]] = Counter()

    def place(self, task: Task, snapshot: Snapshot) -> Sandbox:
        """The sandbox that a run of the task would get, started. Raises Unavailable."""
        return self._choose(asked_sandbox(self._registry, task, snapshot), "auto")

    def execute(
        self,
        task: Task,
        snapshot: Snapshot,
        run_id: str,
        on_step: Callable[[Step], None] | None = None,
        plan: Plan | None = None,
    ) -> Attempt:
        """Run once and grade; see ``ports.Executor``."""
        steps: list[Step] = []

        def record(step: Step) -> None:
            steps.append(step)
            if on_step is not None:
                on_step(step)

        started = time.monotonic()
        workspace_mb = task.limits.workspace_mb
        sandbox = self._choose(asked_sandbox(self._registry, task, snapshot), (plan or Plan()).prefer)
        try:
            bundle = bundle_of(self._registry, task, snapshot)
            workspace_mb = bundle.limits.workspace_mb
            ran = self._in_a_box(sandbox, _Job(task, snapshot, run_id, bundle, self._inputs(task), record))
        except Unfit as error:
            ran = _Ran(Result.FAILED, error.fault)
        graded = Grade(())
        if ran.result is Result.PASSED:
            graded = grade(sandbox, task.checks, ran.answer, ran.files, workspace_mb)
        return Attempt(
            outcome=_outcome(ran, graded, Cost(wall_s=time.monotonic() - started, cpu_s=ran.cpu_s)),
            answer=ran.answer,
            answer_sha256=digest(ran.answer),
            steps=tuple(steps),
            resources=ran.resources,
            sandbox=sandbox.name,
            level=sandbox.level,
            files=ran.files,
        )

    def cancel(self, run_id: str) -> None:
        """Kill the run's box: its ``execute`` returns a cancelled attempt. Unknown ids are ignored."""
        with self._lock:
            box = self._open.get(run_id)
            if box is None:
                return
            self._cancelled.add(run_id)
        box.close()

    def _inputs(self, task: Task) -> dict[str, bytes]:
        try:
            return {file.path: self._blobs.get(file.sha256) for file in task.inputs}
        except NotFound as error:
            raise Unavailable(f"an input of {task.id} is gone: {error}") from None

    def _in_a_box(self, sandbox: Sandbox, job: _Job) -> _Ran:
        with sandbox.open(job.limits) as box:
            with self._lock:
                self._open[job.run_id] = box
            try:
                ran = _run(box, job)
                self._gone.pop((job.task.id, job.snapshot.tree), None)
            except BoxDied as error:
                ran = self._died(job, error)
            finally:
                with self._lock:
                    self._open.pop(job.run_id, None)
                    self._cancelled.discard(job.run_id)
            return replace(ran, cpu_s=box.close().cpu_s)

    def _died(self, job: _Job, error: BoxDied) -> _Ran:
        """A dead box as what it says of the task; raises it when it says nothing of the task."""
        key = (job.task.id, job.snapshot.tree)
        cause = "killed" if job.run_id in self._cancelled else error.cause
        if cause == "gone":
            self._gone[key] += 1
            if self._gone[key] < GONE_MAX:
                raise error
        self._gone.pop(key, None)
        result, name, text = _DEATH[cause]
        fault = Fault(name, text.format(limits=job.limits, detail=error.detail))
        return _Ran(result, fault, resources=_given(job))


def _given(job: _Job) -> tuple[str, ...]:
    """What a worker that cannot say so any more may have used: all that it was given for a call."""
    if job.task.call is None:
        return ()
    return tuple(sorted({"/".join(path.split("/")[:2]) for path in job.bundle.files}))


def _run(box: Box, job: _Job) -> _Ran:
    """Send the job, record each step as it comes, return what the worker says at the end."""
    limits = job.limits
    exchange = Exchange(box, limits.wall_s)
    exchange.send(_message(job), [*job.bundle.files.values(), *job.inputs.values()])
    for index in range(limits.steps + 1):
        message, blobs = exchange.receive({"step": StepFrame, "done": RunDone})
        if isinstance(message, StepFrame):
            exchange.measure(message.action, limits.output_bytes, "an action")
            exchange.measure(message.observation, limits.output_bytes, "an observation")
            job.record(_step(message, job.run_id, index))
            continue
        if isinstance(message, FaultFrame):
            return _Ran(Result.FAILED, _fault(message.fault))
        assert isinstance(message, RunDone)
        exchange.measure(message.answer, limits.output_bytes, "the answer")
        late = message.fault is not None and message.fault.type == "timeout"
        files = read_tar(blobs[0] if blobs else b"", FileLimits(total_bytes=limits.workspace_mb << 20))
        return _Ran(
            result=Result.TIMEOUT if late else _RESULT[message.finished],
            fault=_fault(message.fault),
            answer=message.answer,
            files=files.files,
            resources=tuple(sorted(set(message.resources))),
        )
    return _Ran(Result.BUDGET, Fault("limit", f"the run made more than {limits.steps} steps"))


def _message(job: _Job) -> RunJob:
    task, limits = job.task, job.limits
    return RunJob(
        # not the id itself: a trial's would tell the code under trial that it is being replayed
        run_id=digest([job.run_id])[:16],
        goal=task.goal,
        call={"tool": task.call.tool, "args": dict(task.call.args)} if task.call else None,
        agent=task.agent,
        effects=[effect.value for effect in task.effects],
        max_steps=limits.steps,
        # a tool that hangs is to be told by the worker, which knows where it hung
        tool_wall_s=max(0.8 * limits.wall_s, limits.wall_s - 1.0),
        output_bytes=limits.output_bytes,
        memory_mb=limits.memory_mb,
        harness=job.bundle.harness,
        files=list(job.bundle.files),
        inputs=list(job.inputs),
    )


def _step(message: StepFrame, run_id: str, index: int) -> Step:
    return Step(
        run_id=run_id,
        index=index,
        node=message.node,
        action=message.action,
        observation=message.observation,
        fault=_fault(message.fault),
        started_at=datetime.now(UTC) - timedelta(milliseconds=min(message.duration_ms, 1e9)),
        duration_ms=message.duration_ms,
    )


def _fault(fault: WireFault | None) -> Fault | None:
    return Fault(fault.type, fault.message, fault.where, fault.resource) if fault else None


def _outcome(ran: _Ran, graded: Grade, cost: Cost) -> Outcome:
    """What the run and its grade mean together: an answer counts only if every check passes."""
    if ran.result is not Result.PASSED:
        reason = ran.fault.message if ran.fault else "the harness gave no answer"
        return Outcome(ran.result, 0.0, reason, ran.fault, cost=cost)
    wrong = [check for check in graded.checks if not check.passed]
    if not wrong:
        return Outcome(Result.PASSED, 1.0, "", checks=graded.checks, cost=cost)
    details = "; ".join(f"{check.kind}: {check.detail}" for check in wrong)
    reason = f"{len(wrong)} of {len(graded.checks)} checks failed: {details}"
    fault = graded.fault or Fault("check", details)
    return Outcome(Result.FAILED, graded.score, reason, fault, graded.checks, cost)
