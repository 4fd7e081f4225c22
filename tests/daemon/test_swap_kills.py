"""kill -9 at random points of changing what runs are driven by: no run lost, none mixed, none unprobed."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from agentos.daemon.control.daemon_lock import daemon_info
from agentos.daemon.upkeep.auditing import verify_home
from agentos.daemon.upkeep.doctor import examine
from agentos.domain import EvolutionState, Share, Task, TaskState
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from tests.daemon.swapping import Waiting, as_if_evolved, edit, signed, source, waiting
from tests.daemon.test_kills import Nursery, _ready
from tests.torture.invariants import (
    ENDS,
    MADE,
    Scene,
    attempts_are_whole,
    each_counts_once,
    no_run_is_mixed,
    no_task_lost,
    served_only_what_passed,
)

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

KILLS = int(os.environ.get("AGENTOS_TEST_KILLS", "3"))
TASKS_A_KILL = 3
MOVED = "promoting, with the pointer moved"
_BROKEN = "import no_such_module\n"


@pytest.fixture
def nursery(home: Home) -> Iterator[Nursery]:
    made = Nursery(home)
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
    asked: list[Waiting] = []
    hit: Counter[str] = Counter()
    for number in range(1, KILLS + 1):
        for _ in range(TASKS_A_KILL):
            tasks.append(make_task("double", n=len(tasks), expect=2 * len(tasks)))
            ledger.add_task(tasks[-1], Share.OPEN)
        _change(home, ledger, asked, number, tasks[0])
        child = nursery.start()
        if number % 4:  # three of four kills hit a daemon at work, the fourth one that starts
            until(lambda pid=child: _ready(home, pid), "it is ready", 60)
        _let_live(home, asked, dice, number)
        os.kill(child, signal.SIGKILL)
        nursery.wait()
        hit[_standing(home, asked[-1])] += 1
        assert [*served_only_what_passed(Scene(home))] == []
    if _BROKEN in source(registry):
        edit(home, source(registry).replace(_BROKEN, ""))
    child = nursery.start()
    until(lambda: _ready(home, child), "it is ready", 60)  # all may be done already: it is to end in order
    reader = Reader(home.ledger)
    until(lambda: len(reader.tasks(TaskState.DONE)) == len(tasks), "all tasks are done", 300)
    until(lambda: registry.last_good() == registry.stable(), "what stands is served", 60)
    until(lambda: all(item.state(home).state in ENDS for item in asked), "all have ended", 300)
    os.kill(child, signal.SIGTERM)
    nursery.wait()

    scene = Scene(home, expected={task.id: {"n": 2 * task.call.args["n"]} for task in tasks if task.call})
    looks = (no_task_lost, each_counts_once, attempts_are_whole, no_run_is_mixed)
    assert [why for look in looks for why in look(scene)] == []
    ended = assert_what_is_in_main_is_on_record(home, asked)
    print(f"\n{KILLS} kills hit {dict(hit)}; {len(asked)} promotions ended {dict(ended)}")
    if KILLS >= 20:
        assert {"promoting", MOVED} <= {*hit}
        assert ended["made"] >= 3
        assert ended["rolled_back"], "no probe failed: the test does not test that"
    assert reader.verify() == []
    assert verify_home(home).faults == ()
    assert [finding.what for finding in examine(home, fix=False, full=True)] == []


def _change(home: Home, ledger: Ledger, asked: list[Waiting], number: int, task: Task) -> None:
    """What comes before a kill: a person's edit, or a promotion as soon as the one before has ended."""
    registry = Registry(home.registry)
    text = signed(source(registry), str(number))
    if number % 8 == 2:  # by hand, and broken: it must never be served
        edit(home, _broken(text))
    elif number % 8 == 3:  # by hand, and mended
        edit(home, text.replace(_BROKEN, ""))
    elif all(item.state(home).state in ENDS for item in asked):
        bad = len(asked) % 4 == 3  # its probe fails, and nothing may move
        asked.append(waiting(home, ledger, _broken(text) if bad else text, [task.id], judged=True))
        as_if_evolved(home, asked[-1].evolution.id)
        asked[-1].approve(home)


def _broken(text: str) -> str:
    return text.replace("import hooks\n", "import hooks\n" + _BROKEN)


def _let_live(home: Home, asked: Sequence[Waiting], dice: random.Random, number: int) -> None:
    """Until a moment in which it is to be killed: any, as the pointer moves, or soon after an end."""
    registry = Registry(home.registry)
    stands = registry.stable()
    under_way = bool(asked) and asked[-1].state(home).state not in ENDS
    watched = number % 3 if under_way and _BROKEN not in source(registry) else 0
    deadline = time.monotonic() + (30.0 if watched else dice.uniform(0.0, 4.0))
    while time.monotonic() < deadline:
        if watched == 1 and registry.stable() != stands:  # it is not on record yet
            return
        if watched and asked[-1].state(home).state in ENDS:
            deadline = min(deadline, time.monotonic() + dice.uniform(0.0, 0.5))
            watched = 0
        time.sleep(0.002)


def _standing(home: Home, item: Waiting) -> str:
    """How far the promotion is."""
    state = item.state(home).state
    there = Registry(home.registry).stable().tree == item.candidate.snapshot.tree
    return MOVED if there and state is EvolutionState.PROMOTING else state.value


def assert_what_is_in_main_is_on_record(home: Home, asked: Sequence[Waiting]) -> Counter[str]:
    """How many promotions ended how: each that was made is one commit, each other is none."""
    registry = Registry(home.registry)
    commits = [str(commit.message) for commit in registry.repository.git.walk(registry.stable().commit)]
    ended: Counter[str] = Counter()
    for item in asked:
        evolution = item.state(home)
        made = evolution.state in MADE
        assert sum(f"Evolution: {evolution.id}" in message for message in commits) == made, evolution
        ended["made" if made else evolution.state.value] += 1
    return ended
