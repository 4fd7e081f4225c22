"""A kill after any single write of an evolution: what is taken up again ends as if there had been none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from agentos.domain import Attestation, Candidate, Evolution, EvolutionState, Snapshot, Trial, Verdict
from agentos.evolver.cycle import evolve, finish_promotion
from agentos.evolver.policy import ConsentPolicy
from agentos.evolver.promote.promotion import approve
from agentos.testing import FakeRegistry, MemoryLedger, ScriptedProposer
from tests.evolver.conftest import FAULTY, PATH, RIGHT, USELESS, WITHOUT_FRESH, World, proposal

T = TypeVar("T")
ASK = replace(WITHOUT_FRESH, consent=replace(ConsentPolicy(), low="ask", medium="ask"))
PAGE = "skill/calc/SKILL.md"


class Killed(BaseException):
    """As a kill: nothing catches it."""


class Countdown:
    """Kills after so many writes, once."""

    left = 1_000_000

    def count(self) -> None:
        self.left -= 1
        if self.left == -1:
            raise Killed


class DyingLedger(MemoryLedger):
    """Dies right after a write; what is stored together stands together."""

    def __init__(self, countdown: Countdown) -> None:
        super().__init__()
        self._countdown = countdown
        self._depth = 0

    def _written(self, write: Callable[[], None]) -> None:
        self._depth += 1
        try:
            write()
        finally:
            self._depth -= 1
        if not self._depth:
            self._countdown.count()

    def put(self, *records: Any) -> None:
        self._written(lambda: super(DyingLedger, self).put(*records))

    def note(self, event: str, subject: str, detail: Any, records: Sequence[object] = ()) -> None:
        self._written(lambda: super(DyingLedger, self).note(event, subject, detail, records))

    def advance(self, *position: Any, **more: Any) -> None:
        self._written(lambda: super(DyingLedger, self).advance(*position, **more))


class DyingRegistry(FakeRegistry):
    def __init__(self, files: Mapping[str, str], countdown: Countdown) -> None:
        super().__init__(files)
        self._countdown = countdown

    def add_candidate(self, *what: Any) -> Snapshot:
        made = super().add_candidate(*what)
        self._countdown.count()
        return made

    def promote(self, *what: Any) -> Snapshot:
        made = super().promote(*what)
        self._countdown.count()
        return made


class Steps:
    """A step that came to its end is not done again."""

    def __init__(self) -> None:
        self._done: dict[str, Any] = {}

    def step(self, name: str, work: Callable[[], T]) -> T:
        if name not in self._done:
            self._done[name] = work()
        found: T = self._done[name]
        return found


def story(proposals: Sequence[str], person: str, writes: int) -> tuple[bool, object]:
    """Whether it was killed after so many writes, and all that it came to, taken up again."""
    countdown = Countdown()
    world = World(
        proposer=ScriptedProposer([*map(proposal, proposals)]), policy=ASK if person else WITHOUT_FRESH
    )
    world.ledger = DyingLedger(countdown)
    world.registry = DyingRegistry({PATH: FAULTY, PAGE: "x"}, countdown)
    world.seed()
    opened = world.open()
    found, promoting = Steps(), Steps()

    def work() -> None:
        evolve(world.parts, opened.id, found)
        waiting = world.parts.evolution(opened.id)
        if waiting.state is EvolutionState.AWAITING_CONSENT:
            approve(world.parts, waiting, "person:ada")
            if person == "edits" and world.registry.stable() == waiting.base:
                world.registry.edit({PAGE: "y"})
        if person:
            finish_promotion(world.parts, opened.id, promoting)

    countdown.left = writes
    try:
        work()
    except Killed:
        work()
    trials = world.ledger.find(Trial)
    assert len({trial.id for trial in trials}) == len(trials)
    kinds = (Evolution, Candidate, Verdict, Trial, Attestation)
    counts = [len(world.ledger.find(kind)) for kind in kinds]
    return countdown.left < 0, (world.parts.evolution(opened.id).state, world.source(), counts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("proposals", "person", "state"),
    [
        ([USELESS, RIGHT], "", EvolutionState.PROBATION),
        ([USELESS], "", EvolutionState.NO_IMPROVEMENT),
        ([RIGHT], "approves", EvolutionState.PROBATION),
        ([RIGHT], "edits", EvolutionState.STALE),
    ],
)
def test_a_kill_after_any_write_changes_nothing(
    proposals: Sequence[str], person: str, state: EvolutionState
) -> None:
    _, whole = story(proposals, person, 1_000)
    assert isinstance(whole, tuple)
    assert whole[0] is state
    writes = 0
    while (ended := story(proposals, person, writes))[0]:
        assert ended[1] == whole, f"after {writes} writes"
        writes += 1
    assert writes > 10
