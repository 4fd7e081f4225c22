"""Two control processes on one database: one leads, the other one takes over, and who was replaced writes nothing."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from agentos.daemon.control.daemon_lock import daemon_info
from agentos.daemon.process import REPLACED
from agentos.daemon.upkeep.auditing import verify_home
from agentos.daemon.upkeep.moving import move_home
from agentos.daemon.upkeep.status import daemon_status
from agentos.domain import Result, Share, TaskState
from agentos.home import Home
from agentos.ledger.postgres.leadership import control
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from tests.daemon.conftest import Daemon, _make_task, until

pytestmark = [pytest.mark.postgres, pytest.mark.sandbox]


@pytest.fixture
def two(home: Home, postgres_address: str, tmp_path: Path) -> Iterator[tuple[Daemon, Daemon]]:
    """Daemons of two homes with one database; neither runs."""
    move_home(home, postgres_address)
    other = Home(tmp_path / "other")
    shutil.copytree(home.root, other.root)
    pair = Daemon(home, stand_by=True), Daemon(other, stand_by=True)
    yield pair
    for daemon in pair:
        if daemon.child is not None and daemon.child.poll() is None:
            daemon.signal(signal.SIGCONT)
        daemon.close()


def stands_by(daemon: Daemon) -> bool:
    info = daemon_info(daemon.home)
    assert daemon.child is not None
    return info is not None and info.pid == daemon.child.pid and info.stand_by


def add(home: Home, n: int) -> str:
    task = _make_task("double", n=n, expect=2 * n)
    with closing(Ledger(home.ledger)) as ledger:
        ledger.add_task(task, Share.OPEN)
    return task.id


def until_done(home: Home, tasks: list[str]) -> None:
    with closing(Reader(home.ledger)) as reader:
        until(
            lambda: all(reader.task_view(name).state is TaskState.DONE for name in tasks),
            "all tasks are done",
            120,
        )
        for name in tasks:
            passed = [run for run in reader.runs(name) if run.outcome and run.outcome.result is Result.PASSED]
            assert len(passed) == 1, "no outcome is lost, and none is there twice"


def test_the_stand_by_takes_over_after_a_kill_with_runs_under_way(two: tuple[Daemon, Daemon]) -> None:
    first, second = two
    first.start()
    second.start(wait=False)
    until(lambda: stands_by(second), "the second one stands by", 60)
    assert daemon_status(second.home).state == "stand-by"
    assert daemon_status(second.home).code == 0
    said = daemon_status(second.home).leads
    assert str(first.home.root) in said.split("leads")[0]
    assert "stands by" in said.split("leads")[1]
    tasks = [add(second.home, n) for n in range(8)]
    first.signal(signal.SIGKILL)
    until(second.ready, "the second one leads", 30)
    until_done(second.home, tasks)
    assert verify_home(second.home).faults == ()


def test_a_frozen_leader_is_replaced_and_writes_nothing_when_it_wakes_up(
    two: tuple[Daemon, Daemon], postgres_address: str
) -> None:
    first, second = two
    first.start()
    second.start(wait=False)
    until(lambda: stands_by(second), "the second one stands by", 60)
    before = control(postgres_address)
    assert before is not None
    tasks = [add(second.home, n) for n in range(6)]
    first.signal(signal.SIGSTOP)
    until(second.ready, "the second one leads", 60)
    after = control(postgres_address)
    assert after is not None
    assert (after.term, after.leads) == (before.term + 1, True)
    until_done(second.home, tasks)
    first.signal(signal.SIGCONT)
    assert first.ended(30) == REPLACED
    until_done(second.home, tasks)
    assert verify_home(second.home).faults == ()
    with closing(psycopg.connect(postgres_address)) as raw:
        found = raw.execute("SELECT count(*) FROM dbos.workflow_status WHERE status = 'ERROR'").fetchone()
    assert found == (0,)
