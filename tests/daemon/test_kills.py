"""kill -9 at random points, again and again: no task is lost, none counts twice, nothing is damaged.

``AGENTOS_TEST_KILLS=50`` runs the whole storm; most of its time is what a box's template imports at each start.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from agentos.daemon.control.daemon_lock import daemon_info
from agentos.daemon.upkeep.doctor import examine
from agentos.domain import Result, Share, Task, TaskState
from agentos.home import Home
from agentos.ledger.listing import newest_open_runs
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

KILLS = int(os.environ.get("AGENTOS_TEST_KILLS", "6"))
TASKS = 24 + 2 * KILLS

# Imports once and forks a daemon for each line it reads: most of a start is importing, and it is
# the rest that is to be killed. A task that met many kills would be given up otherwise.
NURSERY = """
import os, sys
from agentos.daemon.process import run_daemon
from agentos.daemon.run import tasks
from agentos.home import Home
tasks.MAX_ATTEMPTS = tasks.MAX_DEATHS = 1_000
home = Home.find(sys.argv[1])
print("born", flush=True)
for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        os.setsid()
        try:
            run_daemon(home, console=False)
        finally:
            os._exit(1)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("gone", flush=True)
"""


class Nursery:
    def __init__(self, home: Home) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", NURSERY, str(home.root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._line() == "born"

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def start(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self._line())

    def wait(self) -> None:
        assert self._line() == "gone"

    def close(self) -> None:
        self.process.communicate()


def test_kills_lose_nothing_and_repeat_nothing(
    home: Home, ledger: Ledger, make_task: Callable[..., Task], until: Any
) -> None:
    dice = random.Random(20260101)
    tasks = [make_task("double", n=n, expect=2 * n) for n in range(TASKS)]
    for task in tasks:
        ledger.add_task(task, Share.OPEN)
    nursery = Nursery(home)
    for number in range(KILLS):
        child = nursery.start()
        if number % 3:  # two of three kills hit a daemon at work, the third one that starts
            until(lambda pid=child: _ready(home, pid), "it is ready", 30)
        time.sleep(dice.uniform(0.0, 0.3 if number % 3 else 1.0))  # the point of the kill, not a wait
        os.kill(child, signal.SIGKILL)
        nursery.wait()
    child = nursery.start()
    until(lambda: _ready(home, child), "it is ready", 30)  # all may be done already: it is to end in order
    reader = Reader(home.ledger)
    until(lambda: len(reader.tasks(TaskState.DONE)) == TASKS, "all tasks are done", 60)
    os.kill(child, signal.SIGTERM)
    nursery.wait()
    nursery.close()
    lost = 0
    for task in tasks:
        runs = reader.runs(task.id)
        counted = [run for run in runs if run.outcome and run.outcome.result is not Result.INFRA]
        assert [run.outcome.result for run in counted if run.outcome] == [Result.PASSED], (task.id, runs)
        assert counted[0].answer == {"n": 2 * task.call.args["n"]}  # type: ignore[union-attr]
        assert sorted(run.attempt for run in runs) == list(range(1, len(runs) + 1))
        lost += len(runs) - 1
    assert lost > 0, "no kill hit a run: the test tests nothing"
    assert newest_open_runs(reader, 100) == []
    assert [finding.what for finding in examine(home, fix=False, full=True)] == []


def _ready(home: Home, pid: int) -> bool:
    info = daemon_info(home)
    return info is not None and info.pid == pid and info.ready
