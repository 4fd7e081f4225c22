"""What happens to one task: attempts, each a run in the ledger, until one of them counts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NoReturn

import structlog

from agentos.daemon.run.execution import BoxExecutor
from agentos.domain import InputFile, Mode, Outcome, Result, Run, Snapshot, Task, TaskState, new_id
from agentos.errors import Conflict, Unavailable
from agentos.evolver.history.recordings import recording_of, whole
from agentos.ledger.store import Ledger
from agentos.ports import Plan, Snapshots
from agentos.trajectories.chat import Happened

MAX_ATTEMPTS = 3  # runs that the machinery lost before a task ends as `infra`
_ENDED = (TaskState.DONE, TaskState.CANCELLED, TaskState.WAITING)
_OPEN = (TaskState.QUEUED, TaskState.RUNNING)

log = structlog.get_logger("agentos.tasks")


class Stopping:
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


class TaskRunner:
    """Does attempts; knows which run of which task is in flight. Thread-safe."""

    def __init__(
        self,
        ledger: Ledger,
        snapshots: Snapshots,
        executor: BoxExecutor,
        stopping: Stopping,
        mode: Mode = Mode.RECORD,
        told: Callable[[Happened], None] | None = None,
    ) -> None:
        """``told`` gets each finished run, and may not wait."""
        self._ledger = ledger
        self._snapshots = snapshots
        self._executor = executor
        self._stopping = stopping
        self._mode = mode
        self._told = told
        self._in_flight: dict[str, str] = {}

    def attempt(self, task_id: str, now: datetime) -> bool:
        """One run of the task. Whether there is nothing more to do until somebody asks for it.

        Safe to repeat after a crash: a run that a dead daemon left open is closed as ``infra``
        first, keeping its steps, so that each attempt is in the record once. A later attempt goes
        on from the record of those before it, on the snapshot of the first.
        """
        view = self._ledger.task_view(task_id)
        if view.state in _ENDED:
            return True
        earlier = self._ledger.runs(task_id)[::-1]
        for run in earlier:
            if run.outcome is None:
                self._lost(run.id, "the daemon was killed during this run")
        lost = sum(not _waited(run) for run in earlier)
        if lost >= MAX_ATTEMPTS:
            self.give_up(task_id, f"the machinery lost {lost} runs of it")
            return True
        snapshot = self._snapshot(earlier)
        sandbox, level = self._place(view.task, snapshot)
        run = Run(
            id=new_id("run"),
            task_id=task_id,
            task_key=view.task.key,
            share=view.share,
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
        self._in_flight[task_id] = run.id
        try:
            return self._run(run, self._plan(earlier))
        finally:
            self._in_flight.pop(task_id, None)

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

    def _run(self, run: Run, plan: Plan) -> bool:
        task = self._ledger.task(run.task_id)
        try:
            done = self._executor.execute(task, run.snapshot, run.id, self._ledger.append_step, plan)
        except Unavailable as error:
            self._stopping.hold_if_set()
            log.warning("run lost", task=task.id, run=run.id, why=str(error))
            self._lost(run.id, str(error))
            return False
        self._stopping.hold_if_set()
        outputs = self._kept(done.files)
        self._ledger.finish_run(run.id, done.outcome, done.answer, outputs, done.resources)
        log.info("run finished", task=task.id, run=run.id, result=done.outcome.result.value)
        if self._told is not None:
            self._told(Happened(task, self._ledger.run(run.id), done.steps))
        return True

    def cancel(self, task_id: str) -> None:
        """Kill the run in flight of a task that was cancelled, if there is one."""
        run_id = self._in_flight.get(task_id)
        if run_id is not None:
            self._executor.cancel(run_id)

    def in_flight(self) -> list[str]:
        """Ids of tasks with a run under way."""
        return list(self._in_flight)

    def give_up(self, task_id: str, why: str) -> None:
        """End a task that no attempt could bring to its end; its runs stay ``infra``."""
        for run in self._ledger.runs(task_id):
            if run.outcome is None:
                self._lost(run.id, why)
        if self._ledger.set_task_state(task_id, _OPEN, TaskState.DONE):
            self._ledger.note("task.given_up", task_id, {"why": why})
            log.error("task given up", task=task_id, why=why)

    def _lost(self, run_id: str, why: str) -> None:
        self._ledger.finish_run(run_id, Outcome(Result.INFRA, 0.0, why))

    def _kept(self, files: Mapping[str, bytes]) -> list[InputFile]:
        blobs = self._ledger.blobs
        return [InputFile(path, blobs.put(content), len(content)) for path, content in files.items()]


def _waited(run: Run) -> bool:
    """It ended because it asked a person: nothing was lost."""
    return run.outcome is not None and run.outcome.result is Result.WAITING
