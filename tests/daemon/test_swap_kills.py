"""kill -9 at random points of changing what runs are driven by: no run lost, none mixed, none unprobed."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from agentos.daemon.doctoring import examine
from agentos.daemon.liveness import daemon_info
from agentos.domain import EvolutionState, Probe, Result, Share, Task, TaskState
from agentos.evolver.probing import driving_sha256
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from tests.daemon.swapping import edit, mixed, signed, source, waiting
from tests.daemon.test_kills import NURSERY, Nursery, _ready

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

KILLS = int(os.environ.get("AGENTOS_TEST_KILLS", "3"))
TASKS_A_KILL = 3
_MADE = (EvolutionState.PROBATION, EvolutionState.PROMOTED)
_ENDS = (*_MADE, EvolutionState.STALE, EvolutionState.ROLLED_BACK)


class _Nursery(Nursery):
    # A few tasks meet many kills here: they would be given up after three.
    source = "from agentos.daemon import tasks\ntasks.MAX_ATTEMPTS = 1_000\n" + NURSERY


@pytest.fixture
def nursery(home: Home) -> Iterator[Nursery]:
    made = _Nursery(home)
    yield made
    info = daemon_info(home)
    if info is not None and info.alive:  # the test failed
        os.kill(info.pid, signal.SIGKILL)
    made.close()


def test_kills_during_swaps_lose_no_run_and_mix_none(
    home: Home, ledger: Ledger, nursery: Nursery, make_task: Callable[..., Task], until: Any
) -> None:
    dice = random.Random(5)
    registry = Registry(home.registry)
    edit(home, signed(source(registry), "0"))
    tasks = [make_task("double", n=0, expect=0)]
    ledger.add_task(tasks[0], Share.OPEN)
    child = nursery.start()
    until(lambda: registry.last_good() == registry.stable(), "the first edit is served", 60)
    until(lambda: ledger.tasks(TaskState.DONE), "the first task is done")
    os.kill(child, signal.SIGTERM)
    nursery.wait()
    asked = []
    killed_in: set[str] = set()
    for number in range(1, KILLS + 1):
        for _ in range(TASKS_A_KILL):
            tasks.append(make_task("double", n=len(tasks), expect=2 * len(tasks)))
            ledger.add_task(tasks[-1], Share.OPEN)
        text = signed(source(registry), str(number))
        if number % 8 == 2:  # by hand, and broken: it must never be served
            edit(home, text.replace("import hooks\n", "import hooks\nimport no_such_module\n"))
        elif number % 8 == 3:  # by hand, and mended
            edit(home, text.replace("import no_such_module\n", ""))
        elif all(item.state(home).state in _ENDS for item in asked):
            asked.append(waiting(home, ledger, text))
            _as_if_evolved(home, asked[-1].evolution.id)
            asked[-1].approve(home)
        child = nursery.start()
        if number % 4:  # three of four kills hit a daemon at work, the fourth one that starts
            until(lambda pid=child: _ready(home, pid), "it is ready", 60)
        time.sleep(dice.uniform(0.0, 4.0))  # the point of the kill, not a wait
        os.kill(child, signal.SIGKILL)
        nursery.wait()
        killed_in |= {item.state(home).state.value for item in asked}
        assert_served_only_what_passed(home)
    if "no_such_module" in source(registry):
        edit(home, source(registry).replace("import no_such_module\n", ""))
    child = nursery.start()
    reader = Reader(home.ledger)
    until(lambda: len(reader.tasks(TaskState.DONE)) == len(tasks), "all tasks are done", 300)
    until(lambda: registry.last_good() == registry.stable(), "what stands is served", 60)
    until(lambda: all(item.state(home).state in _ENDS for item in asked), "all have ended", 300)
    os.kill(child, signal.SIGTERM)
    nursery.wait()

    for task in tasks:
        runs = reader.runs(task.id)
        counted = [
            run.outcome.result for run in runs if run.outcome and run.outcome.result is not Result.INFRA
        ]
        assert counted == [Result.PASSED], (task.id, runs)
    assert [fault for task in tasks for run in reader.runs(task.id) if (fault := mixed(home, run))] == []
    assert EvolutionState.PROMOTING.value in killed_in or KILLS < 20, "no kill hit a promotion"
    commits = [str(commit.message) for commit in registry.repository.git.walk(registry.stable().commit)]
    for item in asked:
        promoted = sum(f"Evolution: {item.evolution.id}" in message for message in commits)
        assert promoted == (item.state(home).state in _MADE), item.state(home)
    assert reader.verify() == []
    assert [finding.what for finding in examine(home, fix=False)] == []


def _as_if_evolved(home: Home, evolution_id: str) -> None:
    """The workflow that brought it to the wait for consent is over: the engine has a row of it."""
    with closing(sqlite3.connect(home.engine, timeout=30)) as connection, connection:
        row = connection.execute("SELECT * FROM workflow_status WHERE status = 'SUCCESS' LIMIT 1")
        names = [column[0] for column in row.description]
        values = dict(zip(names, row.fetchone(), strict=True)) | {
            "workflow_uuid": evolution_id,
            "name": "evolve",
        }
        marks = ", ".join("?" * len(values))
        connection.execute(
            f"INSERT INTO workflow_status ({', '.join(values)}) VALUES ({marks})", [*values.values()]
        )


def assert_served_only_what_passed(home: Home) -> None:
    """``last-good`` is at any moment a snapshot that passed its probe."""
    registry = Registry(home.registry)
    good = registry.last_good()
    assert good is not None
    probed = {probe.driving_sha256 for probe in Reader(home.ledger).find(Probe) if probe.passed}
    assert driving_sha256(registry, good) in probed
