"""An edit that mends only the tasks that were shown is refused by hidden ones that fail alike."""

from __future__ import annotations

import pytest

from agentos.domain import Candidate, Decision, EvolutionState, Share, Trial, TrialSet, Verdict
from agentos.evolver.cycle import trials_of
from agentos.evolver.verdict.judge import recompute
from agentos.testing import ScriptedProposer
from tests.evolver.conftest import FAULTY, World, proposal

# The right limit is 40: whoever has 41 to 50 points fails wrongly.
FITTED = FAULTY.replace("> 50", "> 50 or points in (46, 47, 48)")
RIGHT = FAULTY.replace("> 50", "> 40")


def seed(world: World, hidden: tuple[int, ...]) -> None:
    for points in (46, 47, 48):
        world.live(world.task(points, "pass"))
    for points, expected in ((90, "pass"), (10, "fail"), (20, "fail")):
        world.live(world.task(points, expected))
    for points in hidden:
        world.live(world.task(points, "pass", Share.HOLD_OUT), Share.HOLD_OUT)


def test_what_fits_the_shown_tasks_alone_is_refused_and_the_cause_mended(world: World) -> None:
    world.proposer = ScriptedProposer([proposal(FITTED), proposal(RIGHT)])
    seed(world, hidden=(43, 44))
    ended = world.evolve(world.open())
    first, second = world.ledger.find(Verdict)
    assert first.decision is Decision.REJECT
    assert "none of 2 hidden tasks that fail alike" in first.reasons[0]
    assert second.decision is Decision.PROMOTE
    assert ended.state is EvolutionState.PROBATION
    marked = [trial for trial in world.ledger.find(Trial) if trial.alike]
    assert {trial.set for trial in marked} == {TrialSet.HOLD_OUT}
    (fitted,) = [item for item in world.ledger.find(Candidate) if item.id == first.candidate_id]
    assert recompute(first, fitted, trials_of(world.parts, fitted), world.policy) == []


@pytest.mark.parametrize("hidden", [(), (43,)])
def test_fewer_than_two_hidden_ones_say_nothing(world: World, hidden: tuple[int, ...]) -> None:
    world.proposer = ScriptedProposer([proposal(FITTED)])
    seed(world, hidden)
    assert world.evolve(world.open()).state is EvolutionState.PROBATION
