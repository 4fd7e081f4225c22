"""A disk that fills up while an evolution is at work: nothing is lost, and it goes on when there is room."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agentos.domain import Check, Evolution, EvolutionState, Share, Task, Trial
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from tests.daemon.conftest import UNCOMPARED, Daemon
from tests.daemon.test_evolutions import FAULTY, PAIRS, PATH, RIGHT, ended, source

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]


def test_an_evolution_waits_for_room_and_goes_on(
    tiny_home: Home, make_task: Callable[..., Task], until: Any
) -> None:
    files = {
        PATH: FAULTY.encode(),
        "skill/exam-kit/SKILL.md": b"---\nname: exam-kit\ndescription: Grades.\n---\n",
    }
    Registry(tiny_home.registry).commit(files, "A skill with an honest fault", "edit")
    (tiny_home.root / "policy.toml").write_text(f"[propose]\nbudget_s = 2.0\n{UNCOMPARED}")
    ledger, daemon = Ledger(tiny_home.ledger), Daemon(tiny_home)
    for points, needed in PAIRS:
        task = make_task("exam-kit/grade", points=points, needed=needed)
        check = Check("equals", {"value": "pass" if points >= needed else "fail", "path": "grade"})
        ledger.add_task(replace(task, checks=(check,)), Share.OPEN)
    ledger.close()
    filler = tiny_home.root.parent / "filler"
    try:
        daemon.start()
        reader = Reader(tiny_home.ledger)
        until(lambda: reader.find(Trial), "it is tried", 60)
        subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], stderr=subprocess.DEVNULL)
        until(lambda: "evolution waits" in (tiny_home.logs / "daemon.log").read_text(), "it waits", 60)
        filler.unlink()
        until(lambda: ended(tiny_home), "the evolution has ended", 90)
        (evolution,) = reader.find(Evolution)
        assert evolution.state is EvolutionState.PROBATION, evolution.reason
        assert source(tiny_home) == RIGHT
        assert reader.verify() == []
    finally:
        daemon.close()
