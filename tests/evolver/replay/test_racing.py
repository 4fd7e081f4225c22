"""Several candidates of one evidence: the best by the evidence goes on, and a good first one costs the others nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agentos.domain import Arm, Candidate, Decision, EvolutionState, TrialSet, Verdict
from agentos.evolver.cycle import trials_of
from agentos.evolver.policy import Policy
from agentos.evolver.verdict.judge import recompute
from agentos.ports import Proposal
from agentos.testing import ScriptedProposer

if TYPE_CHECKING:
    from conftest import World

PATH = "skill/calc/tools/grade.py"
FAULTY = "def answer(points):\n    if points > 50:\n        return 'pass'\n    return 'fail'\n"
RIGHT = FAULTY.replace("> 50", ">= 50")
# one of the two failing tasks
HALF = FAULTY.replace("> 50", "> 50 or points == 50 and isinstance(points, float)")
TEMPTING = FAULTY.replace("> 50", "> 40")
USELESS = FAULTY.replace("> 50", "> 51")


def propose(*sources: str) -> ScriptedProposer:
    return ScriptedProposer(
        [Proposal("a cause", f"edit {at}", "x", {PATH: one}, "why", (), ()) for at, one in enumerate(sources)]
    )


def seed(world: World) -> None:
    """Two failing tasks that an edit may mend apart, guards and a hold-out."""
    for points in (50, 50.0):
        world.live(world.task(points, "pass"))  # type: ignore[arg-type] # the tool takes both
    for points, expected in ((60, "pass"), (90, "pass"), (10, "fail"), (49, "fail")):
        world.live(world.task(points, expected))


def unattended(policy: Policy, share: float) -> Policy:
    """With so much of the evidence that an edit has to mend for nobody to be asked."""
    return replace(policy, judge=replace(policy.judge, unattended_share=share))


def spent(world: World) -> Counter[str]:
    """Trials of each candidate, by its edit."""
    names = {item.id: item.edit.summary for item in world.ledger.find(Candidate)}
    return Counter(names[trial.candidate_id] for trial in world.trials() if trial.arm is Arm.CANDIDATE)


def decisions(world: World) -> list[tuple[str, Decision]]:
    names = {item.id: item.edit.summary for item in world.ledger.find(Candidate)}
    return [(names[verdict.candidate_id], verdict.decision) for verdict in world.ledger.find(Verdict)]


def test_a_partial_repair_waits_for_a_whole_one(world: World) -> None:
    """In rank order the first one that mends half of the evidence would be promoted."""
    world.proposer = propose(HALF, RIGHT)
    seed(world)
    ended = world.evolve(world.open())
    assert ended.state is EvolutionState.PROBATION
    assert world.source() == RIGHT
    assert decisions(world) == [("edit 1", Decision.PROMOTE)]
    evidence = [trial for trial in world.trials() if trial.set is TrialSet.EVIDENCE]
    assert spent(world)["edit 0"] == sum(trial.candidate_id.endswith("-1") for trial in evidence)


@pytest.mark.parametrize(
    ("share", "state"), [(0.5, EvolutionState.PROBATION), (1.0, EvolutionState.AWAITING_CONSENT)]
)
def test_alone_a_partial_repair_goes_on_as_the_policy_says(
    world: World, share: float, state: EvolutionState
) -> None:
    world.policy = unattended(world.policy, share)
    world.proposer = propose(USELESS, HALF)
    seed(world)
    assert world.evolve(world.open()).state is state
    assert world.source() == (HALF if state is EvolutionState.PROBATION else FAULTY)
    assert decisions(world) == [("edit 0", Decision.REJECT), ("edit 1", Decision.PROMOTE)]


def test_a_whole_repair_that_comes_first_costs_the_others_nothing(world: World) -> None:
    world.proposer = propose(RIGHT, HALF, USELESS)
    seed(world)
    assert world.evolve(world.open()).state is EvolutionState.PROBATION
    assert set(spent(world)) == {"edit 0"}


def test_where_the_leader_breaks_a_guard_the_next_one_is_tried(world: World) -> None:
    world.policy = unattended(world.policy, 0.5)
    world.proposer = propose(HALF, TEMPTING, USELESS)
    seed(world)
    ended = world.evolve(world.open())
    assert ended.state is EvolutionState.PROBATION
    assert world.source() == HALF
    assert decisions(world) == [
        ("edit 1", Decision.REJECT),
        ("edit 2", Decision.REJECT),
        ("edit 0", Decision.PROMOTE),
    ]
    ids = [trial.id for trial in world.trials()]
    assert len(set(ids)) == len(ids)
    for verdict in world.ledger.find(Verdict):
        candidate = world.ledger.get(Candidate, verdict.candidate_id)
        assert recompute(verdict, candidate, trials_of(world.parts, candidate), world.policy) == []


def test_all_that_lose_are_judged_in_rank_order(world: World) -> None:
    world.proposer = propose(USELESS, FAULTY.replace("> 50", "> 52"), TEMPTING)
    seed(world)
    assert world.evolve(world.open()).state is EvolutionState.REJECTED
    assert [name for name, _ in decisions(world)] == ["edit 0", "edit 1", "edit 2"]
