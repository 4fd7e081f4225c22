"""What a turn of the loop starts, and what it leaves alone; the engine is scripted, the rest is real."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Set
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from agentos.daemon.breaker import Breaker
from agentos.daemon.engine import EVOLVE, PROMOTE, RUN
from agentos.daemon.run.tasks import MAX_ATTEMPTS
from agentos.daemon.service import Service, service
from agentos.daemon.tick import Tick
from agentos.domain import Consent, Evolution, EvolutionState, Share, Task, TaskState
from agentos.errors import Unavailable
from agentos.home import Home
from agentos.registry.git.repository import MAIN
from agentos.settings import load_settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Engine:
    """Says of each kind of workflow whether it is alive, and remembers what it was asked."""

    def __init__(self, *alive: str) -> None:
        self.alive = alive
        self.working: list[str] = []  # on tasks
        self.asked: list[tuple[str, str]] = []
        self.failures: dict[str, BaseException] = {}

    def active(self, kind: str) -> list[str]:
        return self.working if kind == RUN else []

    def start(self, kind: str, subject: str, workflow_id: str | None = None) -> bool:
        self.asked.append((kind, workflow_id or subject))
        return kind in self.alive

    def begin(self, kind: str, subject: str, body: Callable[[], None]) -> None:
        self.asked.append((kind, subject))

    def forget(self, ended_before: datetime) -> int:
        return 0


@pytest.fixture
def parts(home: Home) -> Iterator[Service]:
    with service(home, load_settings(home.settings)) as made:
        yield made


def tick_with(parts: Service, *alive: str) -> Tick:
    tick = Tick(parts)
    scripted: Any = Engine(*alive)
    tick.engine = scripted
    return tick


@pytest.fixture
def promoting(parts: Service) -> Evolution:
    """What a kill in the middle of a promotion leaves that a person had approved."""
    evolution = Evolution(
        id="evo-1",
        evidence_id="evd-1",
        fingerprint_id="f",
        state=EvolutionState.PROMOTING,
        base=parts.registry.stable(),
    )
    parts.ledger.put(evolution)
    consent = Consent("consent-1", "evo-1", "cand-1", "t", "m", "v", "person:me", NOW + timedelta(7), "token")
    parts.ledger.put(consent)
    return evolution


def test_a_promotion_that_is_about_to_be_resumed_is_not_cancelled(
    parts: Service, promoting: Evolution
) -> None:
    tick = tick_with(parts, PROMOTE)
    tick.turn(1.0)
    assert parts.parts.evolution("evo-1").state is EvolutionState.PROMOTING
    assert tick.engine.asked == [(EVOLVE, "evo-1"), (PROMOTE, "promote-consent-1")]  # type: ignore[attr-defined]


def test_a_promotion_whose_workflow_is_over_ends(parts: Service, promoting: Evolution) -> None:
    tick_with(parts).turn(1.0)
    assert parts.parts.evolution("evo-1").state is EvolutionState.CANCELLED


class FullDisk:
    """Tasks whose first end cannot be written."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.full = True
        self.breaker = Breaker()

    def in_flight(self) -> list[str]:
        return []

    def tasks_of(self, runs: Set[str]) -> Set[str]:
        return runs

    def write_old_steps(self) -> None: ...

    def give_up(self, task_id: str, why: str) -> None:
        if self.full:
            self.full = False
            raise Unavailable("the disk is full")
        self.ended.append(task_id)


def test_an_end_that_could_not_be_recorded_is_recorded_later(
    parts: Service, make_task: Callable[..., Task], add: Callable[..., Task]
) -> None:
    task = add(make_task("double", n=1), TaskState.RUNNING)
    tasks: Any = FullDisk()
    tick = tick_with(replace(parts, tasks=tasks))
    for now in range(MAX_ATTEMPTS - 1):
        tick.ended(RUN, task.id)
        tick.turn(float(now))
    assert tasks.ended == [], "a workflow that failed is begun again"
    tick.ended(RUN, task.id)
    with pytest.raises(Unavailable):
        tick.turn(3.0)
    tick.turn(4.0)
    assert tasks.ended == [task.id]


@pytest.mark.slow
def test_a_task_whose_work_failed_is_begun_again(
    parts: Service, make_task: Callable[..., Task], add: Callable[..., Task]
) -> None:
    task = add(make_task("double", n=1), TaskState.RUNNING)
    tick = tick_with(parts)
    scripted: Any = tick.engine
    scripted.failures[task.id] = OSError(errno.EMFILE, "Too many open files")
    tick.ended(RUN, task.id)
    tick.turn(0.0)
    pause = parts.tasks.breaker.pause
    assert pause is not None
    assert "ulimit" in pause.why, "no descriptors: the queue pauses"
    assert scripted.asked == []
    parts.tasks.breaker.try_again()
    tick.turn(1.0)
    assert scripted.asked[:1] == [(RUN, task.id)]
    assert parts.ledger.task_view(task.id).state is TaskState.RUNNING


def test_an_end_of_what_the_ledger_does_not_know_stops_nothing(parts: Service) -> None:
    """A ledger that was restored from a backup is older than the engine's database."""
    tick = tick_with(parts)
    for kind, subject in ((RUN, "task-unknown"), (EVOLVE, "evo-unknown"), (PROMOTE, "evo-unknown")):
        tick.ended(kind, subject)
    tick.turn(0.0)
    tick.turn(1.0)


def test_a_schedule_that_fails_holds_up_no_other(parts: Service, make_task: Callable[..., Task]) -> None:
    due = replace(make_task("double", n=1), schedule="* * * * *", created_at=NOW)
    lost = replace(due, id="task-a-lost", schedule="no such line")
    for task in (lost, due):
        parts.ledger.add_task(task, Share.OPEN, TaskState.SCHEDULED)
    tick = tick_with(parts)
    tick._spawn_scheduled()
    assert [view.task.schedule_id for view in parts.ledger.tasks(TaskState.QUEUED)] == [due.id]


def test_failures_are_not_mined_while_what_a_dead_daemon_left_running_is_yet_to_be_taken_up(
    parts: Service, make_task: Callable[..., Task]
) -> None:
    task = make_task("double", n=1)
    parts.ledger.add_task(task, Share.OPEN)
    parts.ledger.set_task_state(task.id, (TaskState.QUEUED,), TaskState.RUNNING)
    tick = tick_with(parts)  # its engine will take the task up, and has not done so yet
    tick._unmined = True
    tick._mine_when_settled(time.monotonic() + 1_000)
    assert tick._unmined
    parts.ledger.set_task_state(task.id, (TaskState.RUNNING,), TaskState.CANCELLED)
    tick._mine_when_settled(time.monotonic() + 1_000)
    tick._chores["mining"].result()
    assert not tick._unmined


@pytest.mark.slow
def test_a_mining_that_failed_comes_again_without_anything_new(
    parts: Service, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    tick = tick_with(parts)
    for there, away in (("run", "away"), ("away", "run")):
        with closing(sqlite3.connect(home.ledger)) as raw:
            raw.execute(f"ALTER TABLE {there} RENAME TO {away}")
        monkeypatch.setattr("agentos.daemon.upkeep.heartbeat._AGAIN_S", 15.0)
        tick._mine_when_settled(time.monotonic() + 1_000)
        tick._chores["mining"].result()
        assert not tick.heartbeat.is_to_be_tried("mining"), "soon, and not at each turn"
        monkeypatch.setattr("agentos.daemon.upkeep.heartbeat._AGAIN_S", 0.0)
        assert tick.heartbeat.is_to_be_tried("mining") == (away == "away")


def test_a_queue_of_any_length_is_started_in_its_order(
    parts: Service, make_task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentos.daemon.tick._AHEAD", 3)
    added = [make_task("double", n=number) for number in range(10)]
    for task in added:
        parts.ledger.add_task(task, Share.OPEN)
    tick = tick_with(parts)
    for turn in range(20):
        tick.turn(float(turn))
        started = [subject for kind, subject in tick.engine.asked if kind == RUN]  # type: ignore[attr-defined]
        for task_id in started:
            parts.ledger.set_task_state(task_id, (TaskState.QUEUED,), TaskState.DONE)
    assert started == [task.id for task in added]


def test_beside_a_run_that_waits_long_for_a_model_one_may_work_that_asks_none(
    home: Home, make_task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = replace(make_task("agent"), call=None)
    queued = [replace(make_task("agent too"), call=None), *(make_task("double", n=n) for n in range(2))]
    with service(home, load_settings(home.settings).model_copy(update={"parallel": 1})) as parts:
        for task in (agent, *queued):
            parts.ledger.add_task(task, Share.OPEN)
        parts.ledger.set_task_state(agent.id, (TaskState.QUEUED,), TaskState.RUNNING)
        parts.tasks._in_flight[agent.id] = "run-1"
        tick = tick_with(parts)
        engine: Any = tick.engine
        engine.working = [agent.id]
        with parts.served.pending_calls.noted("run-1"):
            tick._start_tasks(refill=True)
            assert engine.asked == []  # it may be answered soon
            monkeypatch.setattr("agentos.daemon.requests.model_requests._LONG_S", 0.0)
            tick._start_tasks(refill=False)
            assert engine.asked == [(RUN, queued[1].id)]
            engine.working = [agent.id, queued[1].id]
            parts.ledger.set_task_state(queued[1].id, (TaskState.QUEUED,), TaskState.RUNNING)
            tick._start_tasks(refill=False)
            assert engine.asked == [(RUN, queued[1].id)]
        engine.working = []
        tick._start_tasks(refill=True)
        assert engine.asked[1:] == [(RUN, queued[0].id)]


def test_a_chore_that_fails_alike_is_logged_once_until_it_worked(parts: Service) -> None:
    tick = tick_with(parts)

    def refused() -> None:
        raise PermissionError("the registry is read-only")

    with capture_logs() as said:
        for work in (refused, refused, lambda: None, lambda: None, refused):
            tick._guarded("skills", work)
    assert [entry["event"] for entry in said] == ["chore failed", "chore works again", "chore failed"]


def test_a_damaged_registry_keeps_nothing_from_making_room(parts: Service) -> None:
    left = parts.home.blobs / "tmp" / "left"
    left.parent.mkdir(exist_ok=True)
    left.touch()
    os.utime(left, (0, 0))
    (parts.registry.repository.path / MAIN).write_text("damaged")
    with pytest.raises(Unavailable):
        tick_with(parts)._keep_up()
    assert not left.exists()
    assert parts.ledger.get_kv("retention.at") is not None
