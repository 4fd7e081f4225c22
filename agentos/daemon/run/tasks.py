"""What happens to one task: attempts, each a run in the ledger, until one of them counts."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

import structlog

from agentos.daemon.breaker import MACHINE, Breaker, cause, of_the_machine
from agentos.daemon.job.inputs import settle_inputs
from agentos.daemon.run.conversation import KERNEL_NODES
from agentos.daemon.run.delivery import RunResults, deliveries_of
from agentos.domain import (
    InputFile,
    KernelFault,
    Mode,
    Outcome,
    Result,
    Run,
    RunEnd,
    Share,
    Snapshot,
    Step,
    Task,
    TaskState,
    kernel_fault,
    new_id,
)
from agentos.errors import Conflict, HostAway, HostLost, Invalid, ModelAway, Unavailable
from agentos.evolver.history.recordings import recording_of, whole
from agentos.ledger.reading import TaskView
from agentos.ledger.store import Ledger
from agentos.ports import Plan, Snapshots
from agentos.trajectories.chat import FinishedRun

if TYPE_CHECKING:
    from agentos.daemon.run.execution import BoxExecutor

MAX_ATTEMPTS = 3  # runs of one task that were lost while the machinery worked, before it ends as `infra`
# Runs of one task during which the daemon died. More, because each task under way is blamed for it alike: somebody
# else's kills in a row would end whatever comes first in the queue.
MAX_DEATHS = 12
REBOOTED = "machine.rebooted"  # memo in the ledger: when a daemon first came up after the machine did
STOPPED = "daemon.stopped"  # memo in the ledger: when a daemon last ended without waiting for its runs
_ENDED = (TaskState.DONE, TaskState.CANCELLED, TaskState.WAITING)
_OPEN = (TaskState.QUEUED, TaskState.RUNNING)

log = structlog.get_logger("agentos.tasks")


class StopSignal:
    """Set once the daemon has to end at once: from then on nothing may be recorded.

    Boxes die with the daemon, and a run that dies so says nothing: its thread is held here until
    the process is gone, exactly as if it had been killed, and recovery takes it up again.
    """

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """From now on."""
        self._event.set()

    def hold_if_set(self) -> None:
        """Returns only when the daemon goes on."""
        if self._event.is_set():
            self._hold()

    def wait(self, seconds: float) -> None:
        """Let time pass; returns only when the daemon goes on."""
        self._event.wait(seconds)
        self.hold_if_set()

    def _hold(self) -> NoReturn:
        while True:
            threading.Event().wait(3600)


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """How attempts are made, and who hears of them; ``told`` gets each finished run, and may not wait."""

    mode: Mode = Mode.RECORD
    hold_out: float = 0.0
    told: Callable[[FinishedRun], None] | None = None
    breaker: Breaker = field(default_factory=Breaker)


class TaskRunner:
    """Does attempts; knows which run of which task is in flight. Thread-safe."""

    def __init__(
        self,
        ledger: Ledger,
        snapshots: Snapshots,
        executor: BoxExecutor,
        stopping: StopSignal,
        options: RunnerOptions | None = None,
    ) -> None:
        options = options or RunnerOptions()
        self.breaker = options.breaker
        self._hold_out = options.hold_out
        self._ledger = ledger
        self._snapshots = snapshots
        self._executor = executor
        self._stopping = stopping
        self._mode = options.mode
        self._told = options.told
        self._in_flight: dict[str, str] = {}
        self._unclosed: dict[str, BaseException] = {}  # runs of this process whose end could not be stored
        self._held: dict[str, HeldSteps] = {}  # by run

    def attempt(self, task_id: str, now: datetime) -> bool:
        """One run of the task. Whether there is nothing more to do until somebody asks for it.

        Raises Unavailable when the machinery is away: the attempt does not count.

        Safe to repeat after a crash: a run that a dead daemon left open is closed as ``infra``
        first, keeping its steps, so that each attempt is in the record once. A later attempt goes
        on from the record of those before it, on the snapshot of the first.
        """
        view = self._ledger.task_view(task_id)
        if view.state in _ENDED:
            return True
        earlier = self._ledger.runs(task_id)[::-1]
        if left_open := [run for run in earlier if run.outcome is None]:
            for run in left_open:
                self._close(run)
            earlier = self._ledger.runs(task_id)[::-1]
        if self._lost_too_often(task_id, earlier):
            return True
        snapshot = self._snapshot(earlier)
        try:
            task, share, fault = self._with_inputs(view)
        except Conflict:  # cancelled between the look and the reading
            return True
        sandbox, level = self._place(task, snapshot)
        run = Run(
            id=new_id("run"),
            task_id=task_id,
            task_key=task.key,
            share=share,
            attempt=len(earlier) + 1,
            snapshot=snapshot,
            sandbox=sandbox,
            level=level,
            started_at=now,
            resumes=earlier[-1].id if earlier else "",
        )
        try:
            self._ledger.begin_run(run)
        except Conflict:  # cancelled between the look and the begin
            return True
        if fault:  # nothing that another attempt would mend
            self.give_up(task_id, fault)
            return True
        self._in_flight[task_id] = run.id
        try:
            ended = self._run(task, run, self._plan(earlier))
        finally:
            self._in_flight.pop(task_id, None)
            if (error := sys.exception()) is not None:
                self._unclosed[run.id] = error
        if isinstance(ended, Unavailable):
            raise ended
        return ended

    def _with_inputs(self, view: TaskView) -> tuple[Task, Share, str]:
        """The task with what is there to read now, and why that cannot be read, "" if it can."""
        if not view.task.sources:
            return view.task, view.share, ""
        try:
            return *settle_inputs(self._ledger, view.task, self._hold_out), ""
        except Invalid as error:
            return view.task, view.share, str(error)

    def _lost_too_often(self, task_id: str, earlier: Sequence[Run]) -> bool:
        """Whether the task was given up for that."""
        lost = [run for run in earlier if _counts(run)]
        deaths = sum(_kind(run) is KernelFault.DAEMON for run in lost)
        if len(lost) - deaths < MAX_ATTEMPTS and deaths < MAX_DEATHS:
            return False
        last = lost[-1].outcome
        why = f"; the last one: {last.reason}" if last else ""
        self.give_up(task_id, f"{len(lost)} runs of it were lost while the machinery worked{why}")
        return True

    def _snapshot(self, earlier: Sequence[Run]) -> Snapshot:
        """A run goes on upon what it began with, as long as that is still there."""
        if earlier:
            first = earlier[0].snapshot
            try:
                if self._snapshots.names(first):
                    return first
            except Unavailable as error:
                log.warning("snapshot gone", run=earlier[0].id, commit=first.commit, why=str(error))
        return self._snapshots.stable()

    def _plan(self, earlier: Sequence[Run]) -> Plan:
        """Served from what earlier attempts left on record.

        Also of one without any step: it may have been killed while it waited for a paid answer.
        """
        if not earlier:
            return Plan(mode=self._mode)
        blobs = self._ledger.blobs
        trajectories = [(run.id, whole(blobs, self._ledger.steps(run.id))) for run in earlier]
        answers = self._ledger.answers(earlier[0].task_id)
        recording = recording_of(earlier[0].snapshot, trajectories, answers)
        return Plan(mode=self._mode, recording=recording, resume=True)

    def _place(self, task: Task, snapshot: Snapshot) -> tuple[str, str]:
        """Name and level of the sandbox it will have; without one, the run itself says why not."""
        try:
            place = self._executor.place(task, snapshot)
            return place.name, place.level
        except Unavailable:
            return "none", "none"

    def _run(self, task: Task, run: Run, plan: Plan) -> bool | Unavailable:
        """As ``attempt``; Unavailable when the machinery is away, and the run is closed."""
        try:
            done = self._executor.execute(task, run.snapshot, run.id, self._recorder(task, run.id), plan)
            self._stopping.hold_if_set()
            outputs = self._kept(done.files)
            ended = RunResults(done.outcome.result, done.answer, outputs)
            due = deliveries_of(task, run.id, ended, self._ledger.blobs) if task.deliver else []
            left = self._left(run.id)
            self._ledger.finish_run(
                run.id,
                done.outcome,
                RunEnd(done.answer, outputs, done.resources, done.host),
                records=due,
                steps=left,
            )
            self._held.pop(run.id, None)
        except (Unavailable, *MACHINE) as error:
            self._stopping.hold_if_set()
            if isinstance(error, HostLost):  # as where the daemon dies: each run that it had is blamed alike
                log.warning("run lost with its host", task=task.id, run=run.id, why=str(error))
                self._lost(run.id, str(error), KernelFault.DAEMON)
                return False
            away = isinstance(error, (ModelAway, HostAway)) or self.breaker.lost(task.id, error)
            log.warning("run lost", task=task.id, run=run.id, why=str(error), counts=not away)
            self._lost(run.id, cause(error), KernelFault.AWAY if away else KernelFault.NONE)
            if away:
                return error if isinstance(error, Unavailable) else Unavailable(cause(error))
            return False
        if self.breaker.has_losses:
            self.breaker.worked(task.id)
        log.info("run finished", task=task.id, run=run.id, result=done.outcome.result.value)
        if self._told is not None:
            steps = whole(self._ledger.blobs, self._ledger.steps(run.id))
            self._told(FinishedRun(task, self._ledger.run(run.id), tuple(steps)))
        return True

    def _recorder(self, task: Task, run_id: str) -> Callable[[Step], None]:
        """What takes the run's steps."""
        if task.call is None:
            return self._ledger.append_step
        self._held[run_id] = HeldSteps(self._ledger.append_steps, KERNEL_NODES)
        return self._held[run_id].add

    def _left(self, run_id: str) -> Sequence[Step]:
        """Steps that the end of the run takes along."""
        return self._held[run_id].left() if run_id in self._held else ()

    def write_old_steps(self) -> None:
        """Store what has waited for long enough. Raises Unavailable."""
        for held in list(self._held.values()):
            held.write_old()

    def cancel(self, task_id: str) -> None:
        """Kill the run in flight of a task that was cancelled, if there is one."""
        run_id = self._in_flight.get(task_id)
        if run_id is not None:
            self._executor.cancel(run_id)

    def in_flight(self) -> list[str]:
        """Ids of tasks with a run under way."""
        return list(self._in_flight)

    def tasks_of(self, runs: Set[str]) -> Set[str]:
        """Those of them whose run is one of ``runs``."""
        return {task_id for task_id, run_id in self._in_flight.copy().items() if run_id in runs}

    def give_up(self, task_id: str, why: str) -> None:
        """End a task that no attempt could bring to its end; its runs stay ``infra``.

        One that never had a run gets one that says why: no task is done without.
        """
        with suppress(Unavailable):  # a damaged row of it: what can be written is its end
            runs = self._ledger.runs(task_id)
            if not runs and self._ledger.task_view(task_id).state in _OPEN:
                runs = [self._empty_run(task_id)]
            for run in runs:
                if run.outcome is None:
                    self._lost(run.id, why)
        self.breaker.forget(task_id)
        if self._ledger.set_task_state(task_id, _OPEN, TaskState.DONE):
            self._ledger.note("task.given_up", task_id, {"why": why})
            log.error("task given up", task=task_id, why=why)

    def _empty_run(self, task_id: str) -> Run:
        view = self._ledger.task_view(task_id)
        run = Run(
            id=new_id("run"),
            task_id=task_id,
            task_key=view.task.key,
            share=view.share,
            attempt=1,
            snapshot=self._snapshots.stable(),
            sandbox="none",
            level="none",
            started_at=datetime.now(UTC),
        )
        self._ledger.begin_run(run)
        return run

    def _close(self, run: Run) -> None:
        """A run that was left open: by a daemon that is gone, or by this one, which could not write its end."""
        if (error := self._unclosed.pop(run.id, None)) is not None:
            away = isinstance(error, (Unavailable, *MACHINE)) or of_the_machine(error)
            self._lost(run.id, cause(error), KernelFault.AWAY if away else KernelFault.NONE)
        elif self._ledger.get_kv(STOPPED, "") > run.started_at.isoformat():
            self._lost(run.id, "the daemon was told to stop at once during this run", KernelFault.AWAY)
        elif self._ledger.get_kv(REBOOTED, "") > run.started_at.isoformat():
            self._lost(run.id, "the machine went down during this run", KernelFault.AWAY)
        else:
            self._lost(run.id, "the daemon was killed during this run", KernelFault.DAEMON)

    def _lost(self, run_id: str, why: str, kind: KernelFault = KernelFault.NONE) -> None:
        fault = kernel_fault(kind, why) if kind else None
        self._ledger.finish_run(run_id, Outcome(Result.INFRA, 0.0, why, fault), steps=self._left(run_id))
        self._held.pop(run_id, None)

    def _kept(self, files: Mapping[str, bytes]) -> tuple[InputFile, ...]:
        blobs = self._ledger.blobs
        return tuple(InputFile(path, blobs.put(content), len(content)) for path, content in files.items())


def _counts(run: Run) -> bool:
    """A loss that may be the task's own fault. One that asked a person lost nothing."""
    waited = run.outcome is not None and run.outcome.result is Result.WAITING
    return not waited and _kind(run) is not KernelFault.AWAY


def _kind(run: Run) -> KernelFault:
    fault = run.outcome.fault if run.outcome else None
    return fault.kind if fault else KernelFault.NONE


HELD_S = 1.0  # how long a step waits at most, but for the daemon's turn
HELD_MAX = 64  # steps at a time


class HeldSteps:
    """Steps of one run on their way to the ledger. Thread-safe; what ``write`` raises reaches who adds, and they stay here.

    A transaction is a flush of the disk and most of a step's cost, and a task that names its tool makes half a dozen
    steps in a few milliseconds. They wait here for the run's end, whose transaction takes them along, but

    - a step of the kernel's own (a model's call, a request, a tool that acts on the outside, a person) is on disk, with
      all before it, when it is told of: nothing gets outside that the record does not know;
    - what is a second old is written by the daemon's next turn: whoever follows the run sees it.

    So a kill takes at most a second of work that stayed in the box, which the next attempt does again. A run without a
    call has a model in it, whose next request rests on every step before: none of its steps waits.
    """

    def __init__(self, write: Callable[[Sequence[Step]], None], at_once: Collection[str]) -> None:
        """``write`` stores steps in one transaction, again without harm; ``at_once`` are the kernel's nodes."""
        self._write = write
        self._at_once = at_once
        self._lock = threading.Lock()
        self._steps: list[Step] = []
        self._since = 0.0  # when the oldest of them came, on the monotonic clock

    def add(self, step: Step) -> None:
        """Take one; on disk when this returns, if it may not wait."""
        with self._lock:
            if not self._steps:
                self._since = time.monotonic()
            self._steps.append(step)
            if step.node in self._at_once or len(self._steps) >= HELD_MAX or self._old():
                self._flush()

    def write_old(self) -> None:
        """Write all, if the oldest has waited for long enough."""
        with self._lock:
            if self._steps and self._old():
                self._flush()

    def left(self) -> Sequence[Step]:
        """What is not written: for the transaction of the run's end."""
        with self._lock:
            return tuple(self._steps)

    def _old(self) -> bool:
        return time.monotonic() - self._since >= HELD_S

    def _flush(self) -> None:
        self._write(self._steps)
        self._steps = []
