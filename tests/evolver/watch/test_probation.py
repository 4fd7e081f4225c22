"""After a promotion: suspicion is measured before anything is rolled back, predictions are scored."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agentos.domain import IMPORT, Attestation, EvolutionState, Share
from agentos.evolver.promote.promotion import roll_back
from agentos.evolver.watch.probation import settle, suspicions, watch

if TYPE_CHECKING:
    from conftest import World

    from agentos.domain import Evolution, Task


@pytest.fixture
def promoted(world: World) -> Evolution:
    world.seed()
    return world.evolve(world.open())


def passed_before(world: World, points: int, expected: str) -> Task:
    """Work that passed live before the promotion and took no part in its replay."""
    task = world.task(points, expected, Share.OPEN)
    world.live(task)
    return task


def test_enough_good_runs_settle_and_attest(world: World, promoted: Evolution) -> None:
    assert settle(world.parts) == []
    for task in (*world.failing, world.task(70, "pass")):
        world.live(task)
    (settled,) = settle(world.parts)
    assert settled.state is EvolutionState.PROMOTED
    promotion, found = world.ledger.find(Attestation)
    assert (promotion.when, found.when) == ("promotion", "probation")
    assert set(found.observed_fixes) == set(world.evidence().task_ids)
    assert found.observed_regressions == ()


def test_runs_made_elsewhere_neither_settle_nor_accuse(world: World, promoted: Evolution) -> None:
    task = passed_before(world, 80, "fail")
    for number in range(4):
        world.live(world.task(60 + number, "pass"), sandbox=IMPORT)
    world.live(task, sandbox=IMPORT)
    assert suspicions(world.parts) == []
    assert settle(world.parts) == []


def test_time_settles_too(world: World, promoted: Evolution) -> None:
    world.later = timedelta(days=8)
    assert [item.id for item in settle(world.parts)] == [promoted.id]


def test_a_live_failure_that_failed_before_too_is_no_suspicion(world: World, promoted: Evolution) -> None:
    world.live(world.task(50, "never right"))
    assert suspicions(world.parts) == []


def test_a_measured_regression_rolls_back(world: World) -> None:
    evolution, broken_later = promote_wrong(world)
    assert evolution.state is EvolutionState.PROBATION
    run = world.live(broken_later)
    (suspicion,) = suspicions(world.parts)
    assert settle(world.parts) == [], "a suspicion has to be measured first"
    ended = watch(world.parts, suspicion, run)
    assert ended.state is EvolutionState.ROLLED_BACK
    assert world.source().count("> 50") == 1
    _, found = world.ledger.find(Attestation)
    assert found.observed_regressions == (run.task_id,)
    assert watch(world.parts, suspicion, run).state is EvolutionState.ROLLED_BACK


def test_a_clock_that_was_put_back_hides_no_failure(world: World) -> None:
    world.later = timedelta(hours=1)
    evolution, broken_later = promote_wrong(world)
    world.later = timedelta()
    run = world.live(broken_later)
    assert evolution.ended_at is not None
    assert run.started_at < evolution.ended_at
    (suspicion,) = suspicions(world.parts)
    assert watch(world.parts, suspicion, run).state is EvolutionState.ROLLED_BACK


def test_a_live_failure_that_the_replay_does_not_show_changes_nothing(
    world: World, promoted: Evolution
) -> None:
    task = passed_before(world, 80, "pass")
    world.flaky = {task.id}
    run = world.live(task)
    world.flaky = set()
    (suspicion,) = suspicions(world.parts)
    assert watch(world.parts, suspicion, run).state is EvolutionState.PROBATION
    assert suspicions(world.parts) == [], "what was measured is not measured again"
    assert world.source().count(">= 50") == 1


def test_after_a_manual_rollback_the_tasks_fail_again_as_they_did(world: World, promoted: Evolution) -> None:
    assert world.live(world.failing[0]).outcome.result == "passed"  # type: ignore[union-attr]
    roll_back(world.parts, promoted, "by hand")
    assert world.live(world.failing[0]).outcome.result == "failed"  # type: ignore[union-attr]


def promote_wrong(world: World) -> tuple[Evolution, Task]:
    """An evolution on probation that broke work which no guard covers."""
    broken = passed_before(world, 45, "fail")
    rules = world.policy
    world.policy = replace(
        rules,
        evidence=replace(rules.evidence, max_guards=0, max_hold_out=0),
        judge=replace(rules.judge, min_tasks=1),
    )
    wrong = world.source().replace("> 50", "> 40")
    world.proposer = type(world.proposer)(
        [replace(world.proposer.proposals[0], files={"skill/calc/tools/grade.py": wrong})]
    )
    world.seed(hidden=())
    return world.evolve(world.open()), broken


def test_a_promotion_is_not_blamed_for_what_came_after_it(world: World, promoted: Evolution) -> None:
    task = passed_before(world, 70, "pass")
    path = "skill/calc/tools/grade.py"
    world.registry.edit({path: "def answer(points):\n    return 'fail'\n"})
    run = world.live(task)
    (suspicion,) = suspicions(world.parts)
    assert watch(world.parts, suspicion, run).state is EvolutionState.PROBATION
    assert suspicions(world.parts) == []


def test_what_cannot_be_rolled_back_stays_on_probation_and_says_why(world: World) -> None:
    evolution, broken = promote_wrong(world)
    world.registry.edit({"skill/calc/tools/grade.py": world.source() + "# a remark\n"})
    run = world.live(broken)
    (suspicion,) = suspicions(world.parts)
    ended = watch(world.parts, suspicion, run)
    assert ended.state is EvolutionState.PROBATION
    assert "cannot be rolled back by itself" in ended.reason
    world.later = timedelta(days=8)
    assert settle(world.parts) == [], "it did not stand the test"
    assert evolution.id == ended.id
