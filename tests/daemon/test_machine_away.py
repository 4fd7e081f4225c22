"""A daemon on a machine that lacks something: the queue pauses and says why, and nothing is lost."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agentos.daemon.upkeep.heartbeat import Heartbeat, read_heartbeat
from agentos.domain import Result, Share, Task, TaskState
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from tests.daemon.conftest import Daemon

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]
TASKS = 8


def queue(home: Home, make_task: Callable[..., Task]) -> None:
    ledger = Ledger(home.ledger)
    for number in range(TASKS):
        ledger.add_task(make_task("double", n=number, expect=2 * number), Share.OPEN)
    ledger.close()


def paused(home: Home) -> Heartbeat | None:
    beat = read_heartbeat(home.run / "heartbeat.json")
    return beat if beat is not None and beat.paused else None


def assert_nothing_was_lost(home: Home, until: Any) -> None:
    reader = Reader(home.ledger)
    until(lambda: len(reader.tasks(TaskState.DONE)) == TASKS, "all tasks are done", 90)
    for view in reader.tasks():
        newest = reader.runs(view.task.id)[0]
        assert newest.outcome is not None
        assert newest.outcome.result is Result.PASSED, newest.outcome.reason
        for run in reader.runs(view.task.id)[1:]:
            assert run.outcome is not None
            assert run.outcome.result is Result.INFRA
            assert "killed" not in run.outcome.reason
    assert reader.verify() == []


@pytest.fixture
def own(home: Home) -> Iterator[Daemon]:
    daemon = Daemon(home)
    yield daemon
    daemon.close()


def test_without_descriptors_the_queue_pauses_and_goes_on(
    own: Daemon, home: Home, make_task: Callable[..., Task], until: Any
) -> None:
    own.start()
    assert own.child is not None
    soft, hard = resource.prlimit(own.child.pid, resource.RLIMIT_NOFILE)
    until(lambda: read_heartbeat(home.run / "heartbeat.json"), "it says how it does")
    beat = read_heartbeat(home.run / "heartbeat.json")
    assert beat is not None
    resource.prlimit(own.child.pid, resource.RLIMIT_NOFILE, (beat.descriptors + 1, hard))
    queue(home, make_task)
    until(lambda: paused(home), "the queue pauses", 60)
    said = paused(home)
    assert said is not None
    assert not said.damaged
    assert not Reader(home.ledger).tasks(TaskState.DONE)
    resource.prlimit(own.child.pid, resource.RLIMIT_NOFILE, (soft, hard))
    assert_nothing_was_lost(home, until)
    until(lambda: paused(home) is None, "it says that it goes on")


def test_on_a_full_disk_the_queue_pauses_and_goes_on(
    tiny_home: Home, make_task: Callable[..., Task], until: Any
) -> None:
    queue(tiny_home, make_task)
    filler = tiny_home.root.parent / "filler"
    daemon = Daemon(tiny_home)
    try:
        daemon.start()
        until(lambda: read_heartbeat(tiny_home.run / "heartbeat.json"), "it says how it does")
        subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], stderr=subprocess.DEVNULL)
        queued = Reader(tiny_home.ledger).tasks(TaskState.QUEUED)
        until(lambda: paused(tiny_home) or not queued, "the queue pauses", 60)
        filler.unlink()
        assert_nothing_was_lost(tiny_home, until)
    finally:
        daemon.close()
