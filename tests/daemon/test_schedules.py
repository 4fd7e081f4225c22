"""Scheduled tasks: once for each time that is due, once for all that were missed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

from agentos.daemon.scheduling.schedules import copy_of, pause, resume, spawn_due, start_copy
from agentos.domain import (
    InputSource,
    Outcome,
    Result,
    Run,
    Share,
    SkippedRun,
    Snapshot,
    Task,
    TaskState,
    Trigger,
)
from agentos.errors import Conflict
from agentos.ledger.rows.codec import to_text
from agentos.ledger.schedules import copies, last_read, without_copies
from agentos.ledger.store import Ledger

START = datetime(2026, 3, 2, 6, 30, tzinfo=UTC)


@pytest.fixture
def hourly(make_task: Callable[..., Task], ledger: Ledger) -> Task:
    task = replace(make_task("double", n=1), schedule="0 * * * *", created_at=START)
    ledger.add_task(task, Share.OPEN, TaskState.SCHEDULED)
    return task


def queued(ledger: Ledger) -> list[Task]:
    return [view.task for view in ledger.tasks(TaskState.QUEUED)]


def test_nothing_is_due_before_its_time(ledger: Ledger, hourly: Task) -> None:
    assert spawn_due(ledger, hourly, Share.OPEN, START + timedelta(minutes=29)) is None
    assert queued(ledger) == []


def test_a_due_time_queues_one_copy_of_the_same_work(ledger: Ledger, hourly: Task) -> None:
    due = START + timedelta(minutes=31)
    spawned = spawn_due(ledger, hourly, Share.OPEN, due)
    assert spawn_due(ledger, hourly, Share.OPEN, due + timedelta(seconds=1)) is None
    (copy,) = queued(ledger)
    assert copy.id == spawned
    assert copy.schedule is None
    assert copy.key == hourly.key


def test_missed_times_are_made_up_for_once(ledger: Ledger, hourly: Task) -> None:
    assert spawn_due(ledger, hourly, Share.OPEN, START + timedelta(days=3)) is not None
    assert spawn_due(ledger, hourly, Share.OPEN, START + timedelta(days=3)) is None
    assert len(queued(ledger)) == 1


def test_a_crash_between_queueing_and_remembering_queues_no_second_copy(ledger: Ledger, hourly: Task) -> None:
    due = START + timedelta(minutes=31)
    spawn_due(ledger, hourly, Share.OPEN, due)
    ledger.set_kv(f"schedule:{hourly.id}", START.isoformat())
    spawn_due(ledger, hourly, Share.OPEN, due)
    assert len(queued(ledger)) == 1


def test_a_clock_that_was_put_back_does_not_silence(ledger: Ledger, hourly: Task) -> None:
    spawn_due(ledger, hourly, Share.OPEN, START + timedelta(days=400))
    for view in ledger.tasks(TaskState.QUEUED):
        ledger.set_task_state(view.task.id, (TaskState.QUEUED,), TaskState.DONE)
    assert spawn_due(ledger, hourly, Share.OPEN, START + timedelta(hours=1)) is None
    assert spawn_due(ledger, hourly, Share.OPEN, START + timedelta(hours=2)) is not None


@pytest.mark.parametrize(("back", "again"), [(timedelta(days=1), True), (timedelta(seconds=1), False)])
def test_a_time_that_a_clock_ahead_has_shown_is_due_again_when_it_comes(
    ledger: Ledger, hourly: Task, back: timedelta, again: bool
) -> None:
    """But not where it was set right by a moment, as it is all the time."""
    due = START + timedelta(days=1, minutes=30)

    def begun(at: datetime) -> bool:
        found = spawn_due(ledger, hourly, Share.OPEN, at)
        for view in ledger.tasks(TaskState.QUEUED):
            ledger.set_task_state(view.task.id, (TaskState.QUEUED,), TaskState.DONE)
        return found in {task.task.id for task in copies(ledger, hourly.id)}

    assert begun(due)
    assert not begun(due - back)
    before = len(copies(ledger, hourly.id))
    begun(due)
    assert len(copies(ledger, hourly.id)) == before + again
    ledger.set_kv(f"schedule:{hourly.id}", START.isoformat())  # killed before that was remembered
    begun(due)
    assert len(copies(ledger, hourly.id)) == before + again


def test_missed_times_are_skipped_where_the_schedule_says_so(ledger: Ledger, hourly: Task) -> None:
    hourly = replace(hourly, trigger=Trigger(missed="skip"))
    assert spawn_due(ledger, hourly, Share.OPEN, START + timedelta(hours=3)) is None  # due 30 minutes ago
    (skipped,) = ledger.find(SkippedRun, schedule_id=hourly.id)
    assert skipped.times == 1
    on_time = START + timedelta(hours=3, minutes=30, seconds=20)
    assert spawn_due(ledger, hourly, Share.OPEN, on_time) is not None


def test_a_run_that_has_not_ended_is_waited_for_and_told(ledger: Ledger, hourly: Task) -> None:
    first = spawn_due(ledger, hourly, Share.OPEN, START + timedelta(hours=1))
    for hours in (2, 3):
        assert spawn_due(ledger, hourly, Share.OPEN, START + timedelta(hours=hours)) is None
    (skipped,) = ledger.find(SkippedRun, schedule_id=hourly.id)
    assert (skipped.times, "had not ended" in skipped.reason) == (2, True)
    assert first is not None
    ledger.set_task_state(first, (TaskState.QUEUED,), TaskState.DONE)
    assert spawn_due(ledger, hourly, Share.OPEN, START + timedelta(hours=4)) is not None


def test_a_pause_starts_nothing_and_is_not_made_up_for(ledger: Ledger, hourly: Task) -> None:
    pause(ledger, hourly)
    assert ledger.task_view(hourly.id).state is TaskState.PAUSED
    with pytest.raises(Conflict):
        pause(ledger, hourly)
    resume(ledger, hourly, START + timedelta(hours=5))
    assert spawn_due(ledger, hourly, Share.OPEN, START + timedelta(hours=5)) is None
    assert spawn_due(ledger, hourly, Share.OPEN, START + timedelta(hours=6)) is not None


def test_resuming_what_is_not_paused_forgets_no_time_that_is_due(ledger: Ledger, hourly: Task) -> None:
    later = START + timedelta(hours=1)
    with pytest.raises(Conflict):
        resume(ledger, hourly, later)
    assert spawn_due(ledger, hourly, Share.OPEN, later) is not None


@pytest.fixture
def live(hourly: Task, ledger: Ledger, tmp_path: Path) -> Task:
    """An hourly task that reads a folder."""
    (tmp_path / "logs").mkdir()
    sources = (InputSource(str(tmp_path / "logs"), "logs", newer_than="last_run"),)
    task = replace(hourly, id="task-live", sources=sources)
    ledger.add_task(task, Share.OPEN, TaskState.SCHEDULED)
    return task


def end(ledger: Ledger, copy_id: str | None) -> Task:
    assert copy_id is not None
    ledger.set_task_state(copy_id, (TaskState.QUEUED,), TaskState.DONE)
    return ledger.task(copy_id)


def contents(ledger: Ledger, task: Task) -> dict[str, bytes]:
    return {file.path: ledger.blobs.get(file.sha256) for file in task.inputs}


def test_each_copy_has_what_was_there_at_its_time(ledger: Ledger, live: Task, tmp_path: Path) -> None:
    """Times are of now, because what is new is told by the times of files."""
    log = tmp_path / "logs" / "app.log"
    now = datetime.now(UTC)
    assert spawn_due(ledger, live, Share.OPEN, now) is None  # nothing to read
    (skipped,) = ledger.find(SkippedRun, schedule_id=live.id)
    assert "no new file" in skipped.reason
    log.write_text("one")
    first = end(ledger, spawn_due(ledger, live, Share.OPEN, now + timedelta(hours=1)))
    log.write_text("two")
    os.utime(log, (now.timestamp() + 5000, now.timestamp() + 5000))
    second = end(ledger, spawn_due(ledger, live, Share.OPEN, now + timedelta(hours=2)))
    assert contents(ledger, first) == {"logs/app.log": b"one"}
    assert contents(ledger, second) == {"logs/app.log": b"two"}
    assert first.key != second.key
    assert [first.sources, first.schedule_id] == [(), live.id]
    assert [view.task.id for view in copies(ledger, live.id)] == [second.id, first.id]
    # what was read is on record, and what did not change since the last run is not read again
    assert [entry.subject for entry in ledger.entries() if entry.event == "task.inputs_read"] == [
        first.id,
        second.id,
    ]
    assert spawn_due(ledger, live, Share.OPEN, now + timedelta(hours=4)) is None


def test_what_is_new_since_a_run_of_a_clock_that_was_ahead_is_read(
    ledger: Ledger, live: Task, tmp_path: Path
) -> None:
    log = tmp_path / "logs" / "app.log"
    log.write_text("one")
    now = datetime.now(UTC) + timedelta(minutes=1)  # later than what is written below
    end(
        ledger,
        start_copy(ledger, copy_of(live, "task-ahead", now + timedelta(days=3650)), Share.OPEN, 0.0)[0],
    )
    log.write_text("two")
    right = end(ledger, start_copy(ledger, copy_of(live, "task-right", now), Share.OPEN, 0.0)[0])
    assert contents(ledger, right) == {"logs/app.log": b"two"}
    assert (
        start_copy(ledger, copy_of(live, "task-none", now + timedelta(minutes=1)), Share.OPEN, 0.0)[0] is None
    )


def test_since_the_last_that_passed_a_failed_night_is_read_again(
    ledger: Ledger, live: Task, tmp_path: Path
) -> None:
    task = replace(live, id="task-pass", sources=(replace(live.sources[0], newer_than="last_pass"),))
    ledger.add_task(task, Share.OPEN, TaskState.SCHEDULED)
    (tmp_path / "logs" / "a").write_text("a")
    now = datetime.now(UTC)
    for hours, result in ((1, Result.FAILED), (2, Result.PASSED)):
        copy = end(ledger, spawn_due(ledger, task, Share.OPEN, now + timedelta(hours=hours)))
        run = Run(f"run-{hours}", copy.id, copy.key, Share.OPEN, 1, Snapshot("c", "t"), "", "", now)
        ledger.set_task_state(copy.id, (TaskState.DONE,), TaskState.QUEUED)
        ledger.begin_run(run)
        ledger.finish_run(run.id, Outcome(result, 1.0, ""))
        assert contents(ledger, copy) == {"logs/a": b"a"}
    assert spawn_due(ledger, task, Share.OPEN, now + timedelta(hours=3)) is None


def test_what_cannot_be_read_is_left_to_the_run_to_say(ledger: Ledger, live: Task, tmp_path: Path) -> None:
    (tmp_path / "logs").rmdir()
    copy = end(ledger, spawn_due(ledger, live, Share.OPEN, datetime.now(UTC) + timedelta(hours=1)))
    assert copy.sources
    assert last_read(ledger, live.id, passed=False) is None


def test_copies_of_schedules_of_earlier_releases_are_known(tmp_path: Path, hourly: Task) -> None:
    """Their ids are all that told what they were copies of."""
    config = Config()
    config.set_main_option("script_location", "agentos.ledger:migrations")
    path = tmp_path / "old.db"
    engine = create_engine(f"sqlite:///{path}")
    copy_id, other_id = f"{hourly.id}-202603020700", "task-other-202603020700"
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0007")
        for name, state in ((hourly.id, "scheduled"), (copy_id, "done"), (other_id, "done")):
            task = replace(hourly, id=name)
            connection.exec_driver_sql(
                "INSERT INTO task (id, name, task_key, share, state, agent, created_at, body, parent) "
                "VALUES (?, 'n', ?, 'open', ?, 'default', '2026', ?, '')",
                (name, task.key, state, to_text(task)),
            )
    engine.dispose()
    ledger = Ledger(path)
    assert [view.task.id for view in copies(ledger, hourly.id)] == [copy_id]
    assert {view.task.id for view in without_copies(ledger, None, 9)} == {hourly.id, other_id}
    ledger.close()


def test_a_task_added_while_the_clock_was_ahead_runs_when_it_is_right(
    ledger: Ledger, make_task: Callable[..., Task]
) -> None:
    ahead = START + timedelta(days=3650)
    task = replace(make_task("double", n=1), schedule="0 * * * *", created_at=ahead)
    ledger.add_task(task, Share.OPEN, TaskState.SCHEDULED)
    assert spawn_due(ledger, task, Share.OPEN, START) is None
    assert spawn_due(ledger, task, Share.OPEN, START + timedelta(hours=1)) is not None
