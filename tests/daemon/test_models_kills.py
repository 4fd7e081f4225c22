"""kill -9 of gateway, daemon and boxes while agents think: every call is paid once, every task ends right.

``AGENTOS_TEST_KILLS=50`` runs the whole storm; most of its time is litellm being imported.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from agentos.daemon.upkeep.doctor import examine
from agentos.domain import Limits, Share, Task, TaskState
from agentos.gateway.calls import CallReading
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.testing import ModelServer
from tests.daemon.thinking_world import (
    KEY,
    KEY_ENV,
    boxes_of,
    free_task,
    gateway_of,
    kill,
    scripted,
    world,
)
from tests.torture.invariants import ended_wrong

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

KILLS = int(os.environ.get("AGENTOS_TEST_KILLS", "5"))
TURNS = 5
PARALLEL = 3
_TURNS = ("box", "gateway", "daemon", "box", "gateway")


class Storm:
    """Kills until it has killed enough; no task loses more attempts than the machinery may lose."""

    def __init__(self, ledger: Ledger, server: ModelServer, daemon: Any, until: Any, seed: int) -> None:
        self.ledger, self.server, self.daemon, self.until = ledger, server, daemon, until
        self.dice = random.Random(seed)
        self.killed: Counter[str] = Counter()

    def strike(self) -> None:
        """Wait for a call under way, choose a moment, and kill."""
        before = len(self.server.requests)
        self.until(lambda: len(self.server.requests) > before, "a model is asked", 60)
        time.sleep(self.dice.uniform(0.0, 0.4))  # the moment of the kill, not a wait
        kind = _TURNS[self.killed.total() % len(_TURNS)] if self._may_lose_more() else "gateway"
        pid = self.daemon.child.pid
        if kind == "gateway":
            victim = gateway_of(pid)
        elif kind == "box":
            victim = self.dice.choice(boxes_of(pid)[1] or [None])
        else:
            victim = pid
        if victim is None:
            return
        kill(victim)
        self.killed[kind] += 1
        if kind == "daemon":
            self.daemon.start()

    def _may_lose_more(self) -> bool:
        running = self.ledger.tasks(TaskState.RUNNING)
        return all(len(self.ledger.runs(view.task.id)) <= 2 for view in running)


def test_a_storm_of_kills_loses_no_call_and_pays_none_twice(
    home: Home, ledger: Ledger, daemon: Any, until: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)
    seed = random.Random(5)
    policy = scripted(delay=lambda: seed.uniform(0.0, 0.25))
    with world(home, policy, settings=f"parallel = {PARALLEL}") as (server, seen):
        limits = Limits(wall_s=600.0)  # a run waits for every gateway that is killed while it lives
        tasks = [free_task(f"[work {number} {TURNS}]", limits=limits) for number in range(2 * KILLS)]
        for task in tasks[: 2 * PARALLEL]:
            ledger.add_task(task, Share.OPEN)
        left = tasks[2 * PARALLEL :]
        daemon.start()
        storm = Storm(ledger, server, daemon, until, KILLS)
        while storm.killed.total() < KILLS:
            waiting = len(ledger.tasks(TaskState.QUEUED))
            for task in left[: max(0, 2 * PARALLEL - waiting)]:  # always more to do than is done
                ledger.add_task(task, Share.OPEN)
                left.remove(task)
            storm.strike()
        print(f"killed: {dict(storm.killed)}")
        begun = [task for task in tasks if task not in left]
        until(lambda: len(ledger.tasks(TaskState.DONE)) == len(begun), "all tasks are done", 180)
        lost = [ended_right(ledger, task) for task in begun]
        print(f"tasks: {len(begun)}, attempts lost: {sum(lost)}, {server.stats()}, posts: {seen.total()}")
        assert storm.killed.keys() == {"gateway", "daemon", "box"}
        assert sum(lost) > 0
        assert server.paid == len(begun) * (TURNS + 1)
        assert not [path for path, count in seen.items() if count > 1]
    daemon.signal(signal.SIGTERM)
    assert daemon.ended() == 0
    record = CallReading(home.calls)
    calls = [call for task in begun for run in ledger.runs(task.id) for call in record.calls(run.id)]
    record.close()
    assert Counter(call.state for call in calls).keys() <= {"done", "moved"}
    assert sum(call.state == "done" and not call.served_from for call in calls) == server.paid
    assert [finding.what for finding in examine(home, fix=False, full=True)] == []


def ended_right(ledger: Ledger, task: Task) -> int:
    """The task passed as if nothing had happened; how many attempts were lost on the way."""
    runs = ledger.runs(task.id)
    assert [*ended_wrong(ledger, runs, task.goal.split()[1], TURNS)] == []
    return len(runs) - 1
