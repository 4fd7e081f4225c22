"""kill -9 at random points, again and again: no task is lost, none counts twice, nothing is damaged."""

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

from agentos.daemon.doctoring import examine
from agentos.daemon.liveness import daemon_info
from agentos.domain import (
    RUNNING_STATES,
    Evolution,
    EvolutionState,
    Result,
    Share,
    Task,
    TaskState,
    Verdict,
)
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

KILLS = 50
TASKS = 120

# Imports once and forks a daemon for each line it reads: most of a start is importing, and it is
# the rest that is to be killed.
NURSERY = """
import os, sys
from agentos.daemon.process import run_daemon
from agentos.home import Home
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


def test_fifty_kills_lose_nothing_and_repeat_nothing(
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
    assert reader.open_runs() == []
    assert [finding.what for finding in examine(home, fix=False)] == []


FAULTY = '''"""Whether a score reaches the mark: the mark itself is enough."""

from pydantic import BaseModel

TOOL = {"name": "reaches", "description": "1 when the score reaches the mark", "effects": ["pure"], "dependencies": []}


class Input(BaseModel):
    score: int
    mark: int


class Output(BaseModel):
    n: int


def run(input: Input) -> Output:
    if input.score > input.mark:
        return Output(n=1)
    return Output(n=0)
'''


def test_an_evolution_that_is_killed_again_and_again_promotes_once(
    home: Home, ledger: Ledger, make_task: Callable[..., Task], until: Any
) -> None:
    dice = random.Random(7)
    registry = Registry(home.registry)
    registry.commit({"skill/test-kit/tools/reaches.py": FAULTY.encode()}, "A faulty tool", "edit")
    pairs = [
        (40, 40),
        (55, 55),
        (70, 70),
        (10, 40),
        (39, 40),
        (54, 55),
        (56, 55),
        (90, 55),
        (71, 70),
        (2, 70),
    ]
    for score, mark in pairs:
        task = make_task("reaches", expect=int(score >= mark), score=score, mark=mark)
        ledger.add_task(task, Share.OPEN)
    nursery = Nursery(home)
    child = nursery.start()
    until(lambda: ledger.find(Evolution), "an evolution is open", 60)
    kills = 0
    while any(item.state in RUNNING_STATES for item in ledger.find(Evolution)) and kills < 15:
        time.sleep(dice.uniform(0.0, 1.0))  # the point of the kill, not a wait
        os.kill(child, signal.SIGKILL)
        nursery.wait()
        kills += 1
        child = nursery.start()
        until(lambda pid=child: _ready(home, pid), "it is ready", 30)
    until(lambda: not any(item.state in RUNNING_STATES for item in ledger.find(Evolution)), "it ended", 120)
    os.kill(child, signal.SIGTERM)
    nursery.wait()
    nursery.close()
    assert kills > 0
    (evolution,) = ledger.find(Evolution)
    assert evolution.state in (EvolutionState.PROBATION, EvolutionState.PROMOTED), evolution
    assert evolution.promoted is not None
    source = registry.files(registry.stable(), "skill/test-kit/tools/reaches.py")
    assert b">=" in source["skill/test-kit/tools/reaches.py"]
    log = subprocess.run(
        ["git", "--git-dir", home.registry, "log", "main", "--format=%(trailers:key=Evolution,valueonly)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert log.stdout.split() == [evolution.id]
    assert len(ledger.find(Verdict, evolution_id=evolution.id)) >= 1
    assert [finding.what for finding in examine(home, fix=False)] == []


def _ready(home: Home, pid: int) -> bool:
    info = daemon_info(home)
    return info is not None and info.pid == pid and info.ready
