"""Scheduled tasks: once for each time that is due, once for all that were missed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agentos.daemon.schedules import spawn_due
from agentos.domain import Share, Task, TaskState
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
