"""What a turn of the loop starts, and what it leaves alone; the engine is scripted, the rest is real."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agentos.daemon.service import EVOLVE, PROMOTE, RUN, Service, service
from agentos.daemon.tick import Tick
from agentos.domain import Consent, Evolution, EvolutionState, Task, TaskState
from agentos.errors import Unavailable
from agentos.home import Home
from agentos.settings import load_settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Engine:
    """Says of each kind of workflow whether it is alive, and remembers what it was asked."""

    def __init__(self, *alive: str) -> None:
        self.alive = alive
        self.asked: list[tuple[str, str]] = []

    def active(self, kind: str) -> list[str]:
        return []

    def start(self, kind: str, subject: str, workflow_id: str | None = None) -> bool:
        self.asked.append((kind, workflow_id or subject))
        return kind in self.alive

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

    def in_flight(self) -> list[str]:
        return []

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
    tick.ended(RUN, task.id)
    with pytest.raises(Unavailable):
        tick.turn(1.0)
    tick.turn(2.0)
    assert tasks.ended == [task.id]


def test_an_end_of_what_the_ledger_does_not_know_stops_nothing(parts: Service) -> None:
    """A ledger that was restored from a backup is older than the engine's database."""
    tick = tick_with(parts)
    for kind, subject in ((RUN, "task-unknown"), (EVOLVE, "evo-unknown"), (PROMOTE, "evo-unknown")):
        tick.ended(kind, subject)
    tick.turn(0.0)
    tick.turn(1.0)
