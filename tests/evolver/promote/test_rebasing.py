"""A verdict holds as long as what its trials got stays: then the edit is put on the newer base, and only then."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace

import pytest

from agentos.domain import (
    Arm,
    Candidate,
    Consent,
    Evolution,
    EvolutionEnding,
    EvolutionState,
    RefusalKind,
    Snapshot,
    Task,
    Trial,
    Verdict,
    digest,
)
from agentos.errors import PromotionRefused
from agentos.evolver.cycle import (
    conclude,
    diagnose_and_curate,
    finish_promotion,
    promote_if_consented,
    propose_candidates,
    reproduce,
    seek_consent,
    trials_of,
    try_candidate,
)
from agentos.evolver.policy import ConsentPolicy, Policy
from agentos.evolver.promote.promotion import approve
from agentos.evolver.promote.rebasing import misplaced, settle_overtaken
from agentos.evolver.replay.verification import borrowed, unfounded
from agentos.evolver.select.curate import TaskSets
from agentos.evolver.verdict.judge import recompute
from agentos.evolver.watch.live_regression import follow
from agentos.testing import FakeExecutor
from tests.evolver.conftest import FAULTY, PATH, RESOURCE, RIGHT, World, proposal

OTHER = "skill/other/SKILL.md"
ASK = replace(Policy(), consent=replace(ConsentPolicy(), low="ask", medium="ask"))


@pytest.fixture
def world() -> World:
    """As in life: a run gets its own resource of the snapshot, and no other."""
    made = World()
    files = made.registry.files
    made.executor = FakeExecutor(
        made._script,
        lambda task, snapshot: digest(
            sorted((path, digest(data)) for path, data in files(snapshot, RESOURCE).items())
        ),
    )
    return made


def judged(world: World) -> Evolution:
    """Accepted and consented to; nothing is promoted yet."""
    world.seed()
    evolution = world.open()
    failing = reproduce(world.parts, evolution.id)
    sets = TaskSets(*(tuple(ids) for ids in diagnose_and_curate(world.parts, evolution.id, failing)))
    tried = propose_candidates(world.parts, evolution.id, sets)
    decisions = [try_candidate(world.parts, candidate_id, sets) for candidate_id in tried]
    conclude(world.parts, evolution.id, tried, decisions)
    seek_consent(world.parts, evolution.id)
    return world.parts.evolution(evolution.id)


def chosen(world: World, evolution: Evolution) -> Candidate:
    return world.ledger.get(Candidate, str(evolution.candidate_id))


def faults(world: World, evolution: Evolution) -> list[str]:
    candidate, trials = chosen(world, evolution), world.ledger.find(Trial, evolution_id=evolution.id)
    verdicts = world.ledger.find(Verdict, evolution_id=evolution.id)
    consents = world.ledger.find(Consent, evolution_id=evolution.id)
    return [
        *unfounded(evolution, verdicts, consents, candidates=[candidate]),
        *misplaced(world.registry, candidate, trials),
    ]


def test_another_skill_that_moves_throws_no_right_edit_away(world: World) -> None:
    evolution = judged(world)
    moved = world.registry.edit({OTHER: "another skill"})
    trials = len(world.trials())
    assert promote_if_consented(world.parts, evolution.id) == EvolutionState.PROBATION
    ended = world.parts.evolution(evolution.id)
    assert world.source() == RIGHT
    assert world.registry.files(world.registry.stable(), OTHER)[OTHER] == b"another skill"
    rebase = chosen(world, ended).rebase
    assert rebase is not None
    assert (rebase.base, rebase.snapshot.tree) == (moved, ended.promoted and ended.promoted.tree)
    assert ended.base == moved, "the version before it, on which probation replays"
    assert rebase.trials == trials == len(world.trials()), "nothing was tried again"
    assert "candidate.rebased" in [note.event for note in world.ledger.notes]
    assert faults(world, ended) == []


def test_what_was_changed_and_put_back_meanwhile_throws_no_right_edit_away(world: World) -> None:
    evolution = judged(world)
    base = world.registry.stable()
    world.registry.edit({OTHER: "another skill"})
    back = world.registry.edit({OTHER: None})
    assert (back.tree, back.commit != base.commit) == (base.tree, True)
    trials = len(world.trials())
    assert promote_if_consented(world.parts, evolution.id) == EvolutionState.PROBATION
    ended = world.parts.evolution(evolution.id)
    assert (world.source(), len(world.trials()), ended.base) == (RIGHT, trials, back)
    assert faults(world, ended) == []


def test_what_a_person_took_back_before_a_kill_was_recovered_from_is_not_promoted_again(world: World) -> None:
    """``main`` had moved and nobody had noted it; when the daemon comes up, a person has put the old text back."""
    evolution = judged(world)
    edit = chosen(world, evolution)
    world.registry.promote(edit.base, edit.snapshot, {"Evolution": evolution.id}, "an edit")
    back = world.registry.edit({PATH: FAULTY}, "I do not want it")
    assert promote_if_consented(world.parts, evolution.id) == EvolutionState.PROBATION
    assert world.registry.stable() == back
    (ended,) = follow(world.parts)
    assert (ended.state, ended.ending) == (EvolutionState.ROLLED_BACK, EvolutionEnding.REVERTED)


def test_what_a_kill_left_stale_is_measured_again_once(world: World) -> None:
    """It had ended, and nobody had taken its evidence up yet."""
    evolution = world.parts.move(judged(world), EvolutionState.STALE, "the registry moved", end=True)
    for _ in range(2):
        assert promote_if_consented(world.parts, evolution.id) == EvolutionState.STALE
        assert not settle_overtaken(world.parts, evolution)
    again = world.ledger.find(Evolution)
    assert [item.takes_up for item in again] == ["", evolution.candidate_id]
    assert world.evolve(again[-1]).state is EvolutionState.PROBATION
    assert promote_if_consented(world.parts, evolution.id) == EvolutionState.STALE
    assert len(world.ledger.find(Evolution)) == 2


def test_what_changed_in_a_bundle_is_measured_again_and_not_searched_for(world: World) -> None:
    evolution = judged(world)
    asked = len(world.proposer.briefs)
    world.registry.edit({"skill/calc/SKILL.md": "the same skill, another page"})
    assert promote_if_consented(world.parts, evolution.id) == EvolutionState.STALE
    assert world.source() != RIGHT
    again = world.ledger.find(Evolution)[-1]
    assert again.takes_up == evolution.candidate_id
    before = len(world.trials())
    ended = world.evolve(again)
    assert ended.state is EvolutionState.PROBATION
    assert world.source() == RIGHT
    assert len(world.trials()) > before, "its trials are made anew, on what stands now"
    assert len(world.proposer.briefs) == asked, "nobody was asked for an edit"
    assert chosen(world, ended).proposer == chosen(world, evolution).proposer
    assert faults(world, ended) == []


@pytest.mark.parametrize("most", [0, 1])
def test_evidence_is_taken_up_again_as_often_as_the_policy_says(world: World, most: int) -> None:
    world.policy = replace(world.policy, mine=replace(world.policy.mine, taken_up=most))
    evolution = judged(world)
    world.registry.edit({"skill/calc/SKILL.md": "the same skill, another page"})
    assert promote_if_consented(world.parts, evolution.id) == EvolutionState.STALE
    assert len(world.ledger.find(Evolution)) == 1 + most


def pages(world: World, changed: Set[str]) -> Callable[[Task, Snapshot], str]:
    """What a run gets: the edited file, and a page of their own for the tasks that are ``changed``."""
    files = world.registry.files

    def given(task: Task, snapshot: Snapshot) -> str:
        page = files(snapshot, OTHER).get(OTHER, b"") if task.id in changed else b""
        return digest([digest(files(snapshot, PATH)[PATH]), digest(page)])

    return given


def test_of_a_stale_verdict_only_what_got_something_else_is_run_again(world: World) -> None:
    """Two tasks get another page of their own; all other runs would get what they got."""
    changed: set[str] = set()
    world.executor = FakeExecutor(world._script, pages(world, changed))
    evolution = judged(world)
    changed |= {task.id for task in world.failing}
    world.registry.edit({OTHER: "another skill"})
    assert promote_if_consented(world.parts, evolution.id) == EvolutionState.STALE
    calls, before = len(world.executor.calls), {trial.id: trial for trial in world.trials()}
    ended = world.evolve(world.ledger.find(Evolution)[-1])
    assert ended.state is EvolutionState.PROBATION
    made = [trial for trial in world.trials() if trial.evolution_id == ended.id]
    again = {trial.task_id for trial in made if not trial.taken_from}
    assert again == changed
    assert len(world.executor.calls) - calls == len([trial for trial in made if not trial.taken_from])
    taken = [trial for trial in made if trial.taken_from]
    assert all(before[trial.taken_from].run_id == trial.run_id for trial in taken)
    assert {trial.look for trial in made if trial.arm is Arm.CANDIDATE} == {2}, "it is a look of its own"
    candidate = chosen(world, ended)
    (verdict,) = world.ledger.find(Verdict, evolution_id=ended.id)
    assert recompute(verdict, candidate, trials_of(world.parts, candidate), world.policy) == []
    known = {one.id: [one] for one in world.trials()}
    assert list(borrowed(made, lambda name: known.get(name, []))) == []
    older = {name: [replace(item, work="") for item in items] for name, items in known.items()}
    assert list(borrowed(made, lambda name: older.get(name, []))) == [], "work was not written down yet"
    forged = replace(taken[0], outcome=replace(taken[0].outcome, score=0.5))
    assert len(list(borrowed([forged], lambda name: known.get(name, [])))) == 1
    assert len(list(borrowed([replace(taken[0], taken_from="none")], lambda name: known.get(name, [])))) == 1


@pytest.mark.parametrize("other", ["", "image", "plug-in"])
def test_boxes_of_another_image_and_another_plug_in_run_everything_again(world: World, other: str) -> None:
    plugins = ("checks/iban (bank 1.0)",) if other == "plug-in" else ()  # which is not installed any more
    changed: set[str] = set()
    world.executor = FakeExecutor(
        lambda task, snapshot: replace(world._script(task, snapshot), plugins=plugins), pages(world, changed)
    )
    evolution = judged(world)
    changed |= {task.id for task in world.failing}
    world.registry.edit({OTHER: "another skill"})
    if other == "image":
        world.image = "two"
    assert promote_if_consented(world.parts, evolution.id) == EvolutionState.STALE
    ended = world.evolve(world.ledger.find(Evolution)[-1])
    made = [trial for trial in world.trials() if trial.evolution_id == ended.id]
    assert any(trial.taken_from for trial in made) is (not other)


def test_an_edit_of_the_very_file_makes_it_stale_and_searched_for(world: World) -> None:
    evolution = judged(world)
    asked = len(world.proposer.briefs)
    world.registry.edit({PATH: world.source() + "\n# by hand\n"})
    assert promote_if_consented(world.parts, evolution.id) == EvolutionState.STALE
    world.proposer.proposals[:] = [proposal(RIGHT + "\n# by hand\n")]
    assert world.evolve(world.ledger.find(Evolution)[-1]).state is EvolutionState.PROBATION
    assert len(world.proposer.briefs) > asked


def test_trials_that_do_not_say_what_they_got_hold_nowhere_else(world: World) -> None:
    evolution = judged(world)
    for trial in world.trials():
        world.ledger._records[Trial][trial.id] = replace(trial, bundle="")
    world.registry.edit({OTHER: "another skill"})
    assert promote_if_consented(world.parts, evolution.id) == EvolutionState.STALE


def test_boxes_that_are_made_of_something_else_make_it_stale(world: World) -> None:
    evolution = judged(world)
    world.registry.edit({OTHER: "another skill"})
    world.image = "two"
    assert promote_if_consented(world.parts, evolution.id) == EvolutionState.STALE


@pytest.mark.parametrize("settled", [True, False])
def test_one_that_waits_for_a_person_can_be_approved_after_another_was(world: World, settled: bool) -> None:
    world.policy = ASK
    waiting = judged(world)
    world.registry.edit({OTHER: "another skill"})
    if settled:  # before the person comes to it, or not
        assert not settle_overtaken(world.parts, waiting)
    approve(world.parts, waiting, "person:ada")
    assert finish_promotion(world.parts, waiting.id, world.durable) is EvolutionState.PROBATION
    assert world.source() == RIGHT


def test_what_was_changed_by_hand_meanwhile_is_not_there_to_be_approved(world: World) -> None:
    world.policy = ASK
    waiting = judged(world)
    world.registry.edit({PATH: world.source() + "\n# by hand\n"})
    with pytest.raises(PromotionRefused) as raised:
        approve(world.parts, waiting, "person:ada")
    assert raised.value.kind == RefusalKind.STALE


def test_a_newer_base_with_something_slipped_in_is_found(world: World) -> None:
    evolution = judged(world)
    world.registry.edit({OTHER: "another skill"})
    promote_if_consented(world.parts, evolution.id)
    ended = world.parts.evolution(evolution.id)
    candidate = chosen(world, ended)
    assert candidate.rebase is not None
    slipped = world.registry.add_candidate(
        "cand-slipped", candidate.rebase.base, {**candidate.edit.files, OTHER: "slipped in"}
    )
    world.ledger.put_back(replace(candidate, rebase=replace(candidate.rebase, snapshot=slipped)))
    found = faults(world, ended)
    assert any("something else than its edit" in fault for fault in found)
    assert any("not the one that was judged" in fault for fault in found)
    world.ledger.put_back(replace(candidate, rebase=replace(candidate.rebase, bundles_sha256="0" * 64)))
    assert any("other trials" in fault for fault in faults(world, ended))
