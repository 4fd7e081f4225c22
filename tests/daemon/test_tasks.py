"""Attempts at a task: each is in the record once, and the task ends exactly once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.run.tasks import MAX_ATTEMPTS, MAX_DEATHS, REBOOTED, RunnerOptions, StopSignal, TaskRunner
from agentos.domain import (
    InputSource,
    KernelFault,
    Mode,
    Outcome,
    Result,
    Run,
    Share,
    Snapshot,
    Step,
    Task,
    TaskState,
    kernel_fault,
)
from agentos.errors import Unavailable
from agentos.ledger.store import Ledger
from agentos.ports import Attempt, Plan
from agentos.testing.registry import attempt

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SNAPSHOT = Snapshot("c" * 40, "d" * 40)


@dataclass
class Snapshots:
    now: Snapshot = SNAPSHOT
    gone: set[str] = field(default_factory=set)

    def stable(self) -> Snapshot:
        return self.now

    def names(self, snapshot: Snapshot) -> list[str]:
        if snapshot.commit in self.gone:
            raise Unavailable("the object is missing")
        return ["agent/default"]


@dataclass
class Executor:
    """Does what the script says, run after run."""

    script: list[Attempt | Unavailable | Callable[[], Attempt]]
    name: str = "fake"
    level: str = "none"
    cancelled: list[str] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    on: list[Snapshot] = field(default_factory=list)

    def place(self, task: Task, snapshot: Snapshot) -> Executor:
        return self

    def execute(
        self, task: Task, snapshot: Snapshot, run_id: str, on_step: Any = None, plan: Plan | None = None
    ) -> Attempt:
        assert plan is not None
        self.plans.append(plan)
        self.on.append(snapshot)
        do = self.script.pop(0)
        if isinstance(do, Unavailable):
            raise do
        return do() if callable(do) else do

    def cancel(self, run_id: str) -> None:
        self.cancelled.append(run_id)


def runner(ledger: Ledger, *script: Attempt | Unavailable | Callable[[], Attempt]) -> TaskRunner:
    return TaskRunner(ledger, Snapshots(), Executor(list(script)), StopSignal())  # type: ignore[arg-type] # scripted


@pytest.fixture
def task(make_task: Callable[..., Task], add: Callable[[Task], Task]) -> Task:
    return add(make_task("double", n=1))


def results(ledger: Ledger, task: Task) -> list[str]:
    return [run.outcome.result.value if run.outcome else "open" for run in reversed(ledger.runs(task.id))]


def test_one_attempt_ends_the_task(ledger: Ledger, task: Task) -> None:
    done = attempt(passed=True, answer={"n": 2}, resources=("skill/test-kit",))
    assert runner(ledger, done).attempt(task.id, NOW)
    assert ledger.task_view(task.id).state is TaskState.DONE
    (run,) = ledger.runs(task.id)
    assert (run.attempt, run.snapshot, run.answer) == (1, SNAPSHOT, {"n": 2})
    assert run.resources == ("skill/test-kit",)
    assert not runner(ledger).attempt.__self__.in_flight()  # type: ignore[attr-defined] # a fresh runner


def test_another_attempt_after_the_end_does_nothing(ledger: Ledger, task: Task) -> None:
    made = runner(ledger, attempt(passed=False))
    assert made.attempt(task.id, NOW)
    assert made.attempt(task.id, NOW)
    assert results(ledger, task) == ["failed"]


def test_what_the_machinery_lost_is_infra_and_tried_again(ledger: Ledger, task: Task) -> None:
    made = runner(ledger, Unavailable("no sandbox"), attempt(passed=True))
    assert not made.attempt(task.id, NOW)
    assert ledger.task_view(task.id).state is TaskState.RUNNING
    assert made.attempt(task.id, NOW)
    assert results(ledger, task) == ["infra", "passed"]
    assert [run.attempt for run in ledger.runs(task.id)] == [2, 1]


def test_after_some_lost_runs_the_task_is_given_up(ledger: Ledger, task: Task) -> None:
    made = runner(ledger, *[Unavailable("no sandbox")] * MAX_ATTEMPTS)
    assert [made.attempt(task.id, NOW) for _ in range(MAX_ATTEMPTS + 1)] == [False] * MAX_ATTEMPTS + [True]
    assert ledger.task_view(task.id).state is TaskState.DONE
    assert results(ledger, task) == ["infra"] * MAX_ATTEMPTS


def test_a_run_that_a_killed_daemon_left_is_closed_and_another_begun(ledger: Ledger, task: Task) -> None:
    open_run = Run("run-old", task.id, task.key, Share.OPEN, 1, SNAPSHOT, "fake", "none", NOW)
    ledger.begin_run(open_run)
    assert runner(ledger, attempt(passed=True)).attempt(task.id, NOW)
    assert results(ledger, task) == ["infra", "passed"]
    old = ledger.run("run-old")
    assert old.outcome is not None
    assert "daemon was killed" in old.outcome.reason


def killed_runs(ledger: Ledger, task: Task, count: int) -> None:
    for number in range(count):
        ledger.begin_run(
            Run(f"run-{number}", task.id, task.key, Share.OPEN, number + 1, SNAPSHOT, "fake", "none", NOW)
        )
        if number < count - 1:
            fault = kernel_fault(KernelFault.DAEMON, "killed")
            ledger.finish_run(f"run-{number}", Outcome(Result.INFRA, 0.0, "killed", fault))


def test_deaths_of_the_daemon_count_less_than_losses_of_the_tasks_own(ledger: Ledger, task: Task) -> None:
    killed_runs(ledger, task, MAX_DEATHS - 1)
    assert runner(ledger, attempt(passed=True)).attempt(task.id, NOW)
    assert results(ledger, task) == ["infra"] * (MAX_DEATHS - 1) + ["passed"]


def test_a_task_during_which_the_daemon_always_dies_is_given_up(ledger: Ledger, task: Task) -> None:
    killed_runs(ledger, task, MAX_DEATHS)
    assert runner(ledger).attempt(task.id, NOW)
    assert ledger.task_view(task.id).state is TaskState.DONE
    assert results(ledger, task) == ["infra"] * MAX_DEATHS


def test_what_went_down_with_the_machine_is_not_the_tasks_fault(ledger: Ledger, task: Task) -> None:
    killed_runs(ledger, task, MAX_DEATHS)
    ledger.set_kv(REBOOTED, (NOW + timedelta(seconds=1)).isoformat())
    assert runner(ledger, attempt(passed=True)).attempt(task.id, NOW)
    last = ledger.run(f"run-{MAX_DEATHS - 1}").outcome
    assert last is not None
    assert last.fault is not None
    assert last.fault.kind is KernelFault.AWAY


def test_a_cancelled_task_gets_no_run(ledger: Ledger, task: Task) -> None:
    ledger.set_task_state(task.id, (TaskState.QUEUED,), TaskState.CANCELLED)
    assert runner(ledger).attempt(task.id, NOW)
    assert results(ledger, task) == []


def test_cancelling_reaches_the_run_in_flight(ledger: Ledger, task: Task) -> None:
    def during() -> Attempt:
        assert made.in_flight() == [task.id]
        made.cancel(task.id)
        return attempt(passed=False)

    executor = Executor([during])
    made = TaskRunner(ledger, Snapshots(), executor, StopSignal())  # type: ignore[arg-type] # scripted
    made.attempt(task.id, NOW)
    assert executor.cancelled == [ledger.runs(task.id)[0].id]
    made.cancel(task.id)  # nothing is in flight any more
    assert len(executor.cancelled) == 1


def test_files_of_a_run_are_kept_as_blobs(ledger: Ledger, task: Task) -> None:
    runner(ledger, replace(attempt(passed=True), files={"a/b.txt": b"text"})).attempt(task.id, NOW)
    (kept,) = ledger.runs(task.id)[0].outputs
    assert (kept.path, kept.size) == ("a/b.txt", 4)
    assert ledger.blobs.get(kept.sha256) == b"text"


def test_giving_up_twice_is_giving_up_once(ledger: Ledger, task: Task) -> None:
    made = runner(ledger)
    made.give_up(task.id, "a bug")
    made.give_up(task.id, "a bug")
    assert ledger.task_view(task.id).state is TaskState.DONE
    assert [entry.event for entry in ledger.entries(subject=task.id)] == ["task.given_up"]


def test_the_result_is_one_of_those_that_count(ledger: Ledger, task: Task) -> None:
    runner(ledger, attempt(passed=False)).attempt(task.id, NOW)
    (run,) = ledger.runs(task.id)
    assert run.outcome is not None
    assert run.outcome.result is Result.FAILED


ELSEWHERE = Snapshot("e" * 40, "f" * 40)
ACT = {"tool": "double", "args": {"n": 1}, "path": "skill/test-kit/tools/double.py"}


def lost_run(ledger: Ledger, task: Task, number: int = 1, *, steps: int = 1) -> Run:
    """A run that a killed daemon left, on a snapshot that is not stable any more."""
    run = Run(f"run-lost-{number}", task.id, task.key, Share.OPEN, number, ELSEWHERE, "fake", "none", NOW)
    ledger.begin_run(run)
    for index in range(steps):
        ledger.append_step(
            Step(run.id, index, "act", ACT, {"ok": True, "output": {"n": index}}, None, NOW, 1.0)
        )
    return run


def test_a_first_attempt_is_served_from_nothing(ledger: Ledger, task: Task) -> None:
    executor = Executor([attempt(passed=True)])
    TaskRunner(ledger, Snapshots(), executor, StopSignal(), RunnerOptions(Mode.LIVE)).attempt(task.id, NOW)  # type: ignore[arg-type] # scripted
    assert executor.plans == [Plan(mode=Mode.LIVE)]
    assert ledger.runs(task.id)[0].resumes == ""


def test_the_next_attempt_goes_on_from_the_record_and_on_the_same_snapshot(
    ledger: Ledger, task: Task
) -> None:
    lost_run(ledger, task, steps=2)
    executor = Executor([Unavailable("the disk is gone"), attempt(passed=True)])
    made = TaskRunner(ledger, Snapshots(), executor, StopSignal())  # type: ignore[arg-type] # scripted
    assert not made.attempt(task.id, NOW)
    assert made.attempt(task.id, NOW)
    first, second = executor.plans
    assert first.resume
    assert first.mode is Mode.RECORD
    assert first.recording is not None
    assert first.recording.run_ids == ("run-lost-1",)
    assert [call.result for call in first.recording.tools] == [
        {"ok": True, "output": {"n": 0}},
        {"ok": True, "output": {"n": 1}},
    ]
    assert second.recording is not None
    assert second.recording.run_ids == ("run-lost-1", ledger.runs(task.id)[1].id)
    assert executor.on == [ELSEWHERE, ELSEWHERE]
    newest = ledger.runs(task.id)[0]
    assert (newest.snapshot, newest.attempt) == (ELSEWHERE, 3)
    assert newest.resumes == ledger.runs(task.id)[1].id


def test_large_observations_are_brought_back_whole(ledger: Ledger, task: Task) -> None:
    run = lost_run(ledger, task, steps=0)
    large = {"ok": True, "output": {"text": "x" * 50_000}}
    ledger.append_step(Step(run.id, 0, "act", ACT, large, None, NOW, 1.0))
    executor = Executor([attempt(passed=True)])
    TaskRunner(ledger, Snapshots(), executor, StopSignal()).attempt(task.id, NOW)  # type: ignore[arg-type] # scripted
    recording = executor.plans[0].recording
    assert recording is not None
    assert recording.tools[0].result == large


def test_a_snapshot_that_is_gone_is_replaced_by_the_stable_one(ledger: Ledger, task: Task) -> None:
    lost_run(ledger, task)
    executor = Executor([attempt(passed=True)])
    gone = Snapshots(gone={ELSEWHERE.commit})
    TaskRunner(ledger, gone, executor, StopSignal()).attempt(task.id, NOW)  # type: ignore[arg-type] # scripted
    assert executor.on == [SNAPSHOT]
    assert executor.plans[0].resume


def test_waiting_for_a_person_is_no_lost_attempt(ledger: Ledger, task: Task) -> None:
    def waiting() -> Attempt:
        return replace(attempt(passed=False), outcome=Outcome(Result.WAITING, 0.0, "asks a person"))

    executor = Executor([*[waiting] * (MAX_ATTEMPTS + 2), attempt(passed=True)])
    made = TaskRunner(ledger, Snapshots(), executor, StopSignal())  # type: ignore[arg-type] # scripted
    for _ in range(MAX_ATTEMPTS + 2):
        assert made.attempt(task.id, NOW)
        assert ledger.task_view(task.id).state is TaskState.WAITING
        assert made.attempt(task.id, NOW)  # nothing to do until it is answered
        assert ledger.set_task_state(task.id, (TaskState.WAITING,), TaskState.QUEUED)
    assert made.attempt(task.id, NOW)
    assert results(ledger, task) == ["waiting"] * (MAX_ATTEMPTS + 2) + ["passed"]


def test_an_attempt_that_left_no_step_is_gone_on_from_all_the_same(ledger: Ledger, task: Task) -> None:
    """It may have been killed while a paid answer was on its way: only the record of calls knows."""
    lost_run(ledger, task, steps=0)
    executor = Executor([attempt(passed=True)])
    TaskRunner(ledger, Snapshots(), executor, StopSignal()).attempt(task.id, NOW)  # type: ignore[arg-type] # scripted
    (plan,) = executor.plans
    assert plan.resume
    assert plan.recording is not None
    assert plan.recording.run_ids == ("run-lost-1",)


@pytest.fixture
def live(make_task: Callable[..., Task], add: Callable[[Task], Task], tmp_path: Path) -> Task:
    """A task that reads a folder when it runs."""
    (tmp_path / "in").mkdir()
    return add(replace(make_task("double", n=1), sources=(InputSource(str(tmp_path / "in"), "in"),)))


def test_live_inputs_are_read_by_the_first_attempt_and_stay(
    ledger: Ledger, live: Task, tmp_path: Path
) -> None:
    """So a later attempt, a replay and a trial of this task have the very contents."""
    file = tmp_path / "in" / "a.txt"
    file.write_text("as it was")
    made = runner(ledger, Unavailable("the box was lost"), attempt(passed=True))
    assert not made.attempt(live.id, NOW)
    file.write_text("another text")
    assert made.attempt(live.id, NOW)
    task = ledger.task(live.id)
    assert [(one.path, ledger.blobs.get(one.sha256)) for one in task.inputs] == [("in/a.txt", b"as it was")]
    assert {run.task_key for run in ledger.runs(live.id)} == {task.key}
    assert task.key != live.key
    (entry,) = [entry for entry in ledger.entries(subject=live.id) if entry.event == "task.inputs_read"]
    assert entry.detail["files"] == {"in/a.txt": task.inputs[0].sha256}


def test_inputs_that_cannot_be_read_end_the_task_at_once_and_say_why(
    ledger: Ledger, live: Task, tmp_path: Path
) -> None:
    (tmp_path / "in").rmdir()
    assert runner(ledger).attempt(live.id, NOW)
    (run,) = ledger.runs(live.id)
    assert run.outcome is not None
    assert run.outcome.result is Result.INFRA
    assert str(tmp_path / "in") in run.outcome.reason
    assert ledger.task_view(live.id).state is TaskState.DONE
