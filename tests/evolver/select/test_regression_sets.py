"""What an edit rewrites beside the diagnosed place has to keep what it did: a merged skill passes the tests of both."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agentos.domain import (
    Candidate,
    Decision,
    Diagnosis,
    Edit,
    Evolution,
    EvolutionState,
    Layer,
    Manifest,
    Share,
    Step,
    Task,
    TrialSet,
    Verdict,
)
from agentos.evolver.cycle import try_candidate
from agentos.evolver.promote.promotion import roll_back
from agentos.evolver.select.curate import TaskSets, with_inherited

if TYPE_CHECKING:
    from conftest import World

PATH = "skill/calc/tools/grade.py"
TEXT = "def answer(points):\n    if {}:\n        return 'pass'\n    return 'fail'\n"
KEEPS = TEXT.format("points >= 45")
FORGETS = TEXT.format("points >= 45 and points != 50")  # mends 45, and breaks what was mended before


@pytest.fixture
def mended(world: World) -> World:
    """An evolution has mended 50 points in skill/calc, and stands."""
    world.seed(hidden=())
    assert world.evolve(world.open()).promoted
    return world


def merging(world: World, source: str) -> tuple[Evolution, Candidate, TaskSets]:
    """An edit of skill/calc by an evolution of another place, for 45 points."""
    base = world.registry.stable()
    where = Diagnosis(Layer.SKILL, "agent/default", "", "why")
    evolution = Evolution("evo-2", "evd-2", "f2", EvolutionState.PROPOSING, base, diagnosis=where)
    tasks = [world.task(45, "pass"), world.task(46, "pass")]
    ids = tuple(task.id for task in tasks)
    manifest = Manifest("evd-2", "c", "e", (PATH,), ids, (), Layer.SKILL, "w")
    snapshot = world.registry.add_candidate("cand-2", base, {PATH: source})
    edit = Edit({PATH: source}, "one of two", "merge")
    candidate = Candidate("cand-2", "evo-2", "skill", 1, manifest, edit, base, snapshot)
    world.ledger.put(replace(world.evidence(), id="evd-2", run_ids=(), task_ids=ids))
    world.ledger.put(evolution)
    world.ledger.put(candidate)
    return evolution, candidate, TaskSets(ids, (), ())


def test_a_merged_one_that_fails_what_its_parent_repaired_is_rejected(mended: World) -> None:
    _, candidate, sets = merging(mended, FORGETS)
    assert try_candidate(mended.parts, candidate.id, sets) == Decision.REJECT
    (verdict,) = mended.ledger.find(Verdict, candidate_id="cand-2")
    assert {*verdict.broken} & {task.id for task in mended.failing}


def test_one_that_passes_the_tests_of_both_is_promoted_by_its_trials(mended: World) -> None:
    _, candidate, sets = merging(mended, KEEPS)
    assert try_candidate(mended.parts, candidate.id, sets) == Decision.PROMOTE
    tried = {trial.task_id: trial.set for trial in mended.trials() if trial.evolution_id == "evo-2"}
    first, twin = (tried.get(task.id) for task in mended.failing)
    assert (first, twin) == (TrialSet.GUARD, None), "both ask for the same work, which is tried once"


def test_what_is_drawn_for_the_place_anyway_is_not_drawn_again(mended: World) -> None:
    evolution, candidate, sets = merging(mended, KEEPS)
    here = Diagnosis(Layer.SKILL, "skill/calc", PATH, "why")
    assert with_inherited(mended.parts, replace(evolution, diagnosis=here), candidate, sets) == sets
    known = replace(sets, guards=tuple(task.id for task in mended.failing))
    assert with_inherited(mended.parts, evolution, candidate, known) == known
    new = replace(candidate, edit=Edit({"skill/other/SKILL.md": "x"}, "", ""))
    assert with_inherited(mended.parts, evolution, new, sets) == sets


def test_what_was_rolled_back_repaired_nothing(mended: World) -> None:
    (first,) = mended.ledger.find(Evolution)
    roll_back(mended.parts, first, "by hand")
    evolution, candidate, sets = merging(mended, KEEPS)
    guards = with_inherited(mended.parts, evolution, candidate, sets).guards
    assert not {*guards} & {task.id for task in mended.failing}


def settled(world: World) -> None:
    (first,) = [item for item in world.ledger.find(Evolution) if item.promoted]
    world.ledger.put(replace(first, state=EvolutionState.PROMOTED))


def helped(world: World, number: int, share: Share, action: object) -> Task:
    """Passing work whose run did this while the skill was listed to it."""
    task = world.task(90 + number, "pass", share)
    run = world.live(task, share)
    step = Step(run.id, 0, "act", action, None, None, world.now(), 1.0)
    world.ledger.insert_step(step)
    return task


def test_work_that_passed_with_a_skill_that_it_read_is_a_test_of_it_and_hidden_work_stays_hidden(
    mended: World,
) -> None:
    read = {"tool": "read_skill", "args": {"skill": "calc"}}
    shown, hidden = helped(mended, 1, Share.OPEN, read), helped(mended, 2, Share.HOLD_OUT, read)
    evolution, candidate, sets = merging(mended, KEEPS)
    found = with_inherited(mended.parts, evolution, candidate, sets)
    assert not {shown.id, hidden.id} & {*found.guards, *found.hold_out}, "only what is on probation passed it"
    settled(mended)
    listed = helped(mended, 3, Share.OPEN, {"tool": "other", "args": {}})
    bare = replace(shown, id="task-bare", goal="no checks", checks=())
    mended.ledger.add_task(bare, Share.OPEN)
    mended.ledger.insert_step(Step(mended.live(bare).id, 0, "act", read, None, None, mended.now(), 1.0))
    found = with_inherited(mended.parts, evolution, candidate, sets)
    assert shown.id in found.guards
    assert hidden.id in found.hold_out
    assert hidden.id not in found.guards
    assert not {listed.id, bare.id} & {*found.guards, *found.hold_out}


def test_there_are_at_most_as_many_as_an_evolution_has_itself(mended: World) -> None:
    settled(mended)
    for number in range(5):
        helped(mended, number, Share.OPEN, {"tool": "read_skill", "args": {"skill": "calc"}})
    mended.policy = replace(mended.policy, evidence=replace(mended.policy.evidence, max_guards=3))
    evolution, candidate, sets = merging(mended, KEEPS)
    assert len(with_inherited(mended.parts, evolution, candidate, sets).guards) == 3
