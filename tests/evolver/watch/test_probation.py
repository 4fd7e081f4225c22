"""After a promotion: suspicion is measured before anything is rolled back, predictions are scored."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agentos.domain import (
    IMPORT,
    Attestation,
    Evidence,
    Evolution,
    EvolutionEnding,
    EvolutionState,
    Outcome,
    ResourceId,
    Result,
    Run,
    RunEnd,
    Share,
    Sighting,
)
from agentos.errors import Unavailable
from agentos.evolver.cycle import finish_promotion
from agentos.evolver.find.mining import mine
from agentos.evolver.find.triage import triage
from agentos.evolver.policy import Policy
from agentos.evolver.promote.promotion import approve, roll_back
from agentos.evolver.select.curate import choose_sets
from agentos.evolver.watch.health import mended
from agentos.evolver.watch.live_regression import LiveArms, follow
from agentos.evolver.watch.probation import settle, suspicions, watch
from agentos.testing import FakeExecutor, attempt

if TYPE_CHECKING:
    from conftest import World

    from agentos.domain import Task


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
    for task in (*world.failing, *(world.task(points, "pass") for points in (70, 71, 72))):
        assert settle(world.parts) == []
        world.live(task)
    (settled,) = settle(world.parts)
    assert (settled.state, settled.ending) == (EvolutionState.PROMOTED, EvolutionEnding.STOOD)
    assert settled.reason == "3 live runs stood the test"
    promotion, found = world.ledger.find(Attestation)
    assert (promotion.when, found.when) == ("promotion", "probation")
    assert set(found.observed_fixes) == set(world.evidence().task_ids)
    assert found.observed_regressions == ()


def test_runs_made_elsewhere_neither_settle_nor_accuse(world: World, promoted: Evolution) -> None:
    task = world.task(80, "fail")
    for number in range(4):
        world.live(world.task(60 + number, "pass"), sandbox=IMPORT)
    world.live(task, sandbox=IMPORT)
    assert suspicions(world.parts) == []
    assert settle(world.parts) == []


def test_time_settles_too(world: World, promoted: Evolution) -> None:
    world.later = timedelta(days=8)
    assert [item.id for item in settle(world.parts)] == [promoted.id]


def test_a_clock_that_is_far_ahead_ends_no_watch_for_a_day(world: World, promoted: Evolution) -> None:
    world.later = timedelta(days=365)
    assert settle(world.parts) == []
    world.later += timedelta(hours=23)  # over midnight, whenever this is tried but in its first hour
    assert settle(world.parts) == []
    world.later = timedelta(0)  # somebody put it right
    assert settle(world.parts) == []
    world.later = timedelta(days=30)  # no daemon ran for so long
    assert settle(world.parts) == []
    world.later = timedelta(days=366, seconds=1)
    assert [item.id for item in settle(world.parts)] == [promoted.id]


def test_a_live_failure_that_fails_on_the_version_before_too_accuses_nobody(
    world: World, promoted: Evolution
) -> None:
    run = world.live(world.task(50, "never right"))
    (suspicion,) = suspicions(world.parts)
    assert watch(world.parts, suspicion, run).state is EvolutionState.PROBATION
    assert suspicions(world.parts) == []
    world.live(world.ledger.task(run.task_id))
    assert suspicions(world.parts) == [], "equal work is not measured again while nothing changed"


def test_work_that_was_never_seen_is_measured_too(world: World) -> None:
    evolution, _ = promote_wrong(world)
    run = world.live(world.task(44, "fail"))
    (suspicion,) = suspicions(world.parts)
    ended = watch(world.parts, suspicion, run)
    assert (ended.state, ended.ending) == (EvolutionState.ROLLED_BACK, EvolutionEnding.REGRESSED)
    assert "> 50" in world.source()
    assert evolution.id == ended.id


def test_a_replay_that_the_machinery_loses_acquits_nobody(world: World) -> None:
    """Lost boxes end as results too; what was not measured stays a suspicion."""
    promote_wrong(world)
    run = world.live(world.task(44, "fail"))
    (suspicion,) = suspicions(world.parts)
    script, lost = world._script, replace(attempt(passed=False), outcome=Outcome(Result.INFRA, 0.0, "gone"))
    world.executor = FakeExecutor(lambda task, snapshot: lost)
    with pytest.raises(Unavailable):
        watch(world.parts, suspicion, run)
    assert suspicions(world.parts) == [suspicion]
    left = [1, 0, 0]
    world.executor = FakeExecutor(
        lambda task, snapshot: lost if left and left.pop() else script(task, snapshot)
    )
    assert watch(world.parts, suspicion, run).ending is EvolutionEnding.REGRESSED


def test_twenty_new_failures_after_re_runs_of_the_evidence_settle_nothing(world: World) -> None:
    """Row 7 of the issue: the evidence's own re-runs stood for live use, and what came after was not watched."""
    evolution, _ = promote_wrong(world)
    for _ in range(3):
        for task in world.failing:
            world.live(task)
    assert settle(world.parts) == []
    for number in range(20):
        world.live(world.task(41 + number % 9, "fail"))
        if world.parts.evolution(evolution.id).state is EvolutionState.ROLLED_BACK:
            break
        for found in suspicions(world.parts):
            watch(world.parts, found, world.ledger.run(found.run_id))
        assert settle(world.parts) == []
    assert world.parts.evolution(evolution.id).state is EvolutionState.ROLLED_BACK


def test_work_that_was_tried_before_the_promotion_settles_nothing(world: World) -> None:
    """A schedule asks for the same guards and hidden tasks each day; a copy under another name is no other work."""
    world.seed()
    evolution = world.evolve(world.open())
    tried = {trial.task_id for trial in world.trials()} - {task.id for task in world.failing}
    assert len(tried) >= 3
    for number, task_id in enumerate(sorted(tried)):
        task = world.ledger.task(task_id)
        world.live(task)
        copy = replace(task, id=f"task-copy-{number}", name="another")
        world.ledger.add_task(copy, Share.OPEN)
        world.live(copy)
    assert settle(world.parts) == []
    world.later = timedelta(days=8)
    (ended,) = settle(world.parts)
    assert (ended.state, ended.ending) == (EvolutionState.PROMOTED, EvolutionEnding.UNPROVEN)
    assert evolution.id == ended.id


def unchecked(world: World, points: int) -> Task:
    task = replace(
        world.task(points, "?"), id=f"task-unchecked-{points}", checks=(), goal=f"look at {points}"
    )
    world.ledger.add_task(task, Share.OPEN)
    return task


def run_unchecked(world: World, points: int, *, passed: bool = True) -> None:
    task = unchecked(world, points)
    now = datetime.now(UTC)
    run = Run(
        f"run-{task.id}", task.id, task.key, Share.OPEN, 1, world.registry.stable(), "fake", "none", now
    )
    world.ledger.begin_run(run)
    done = attempt(passed=passed, resources=("skill/calc",))
    world.ledger.finish_run(run.id, done.outcome, RunEnd(done.answer, resources=done.resources))


def test_work_without_checks_says_nothing_either_way(world: World, promoted: Evolution) -> None:
    for points in range(70, 80):
        run_unchecked(world, points, passed=points % 2 == 0)
    assert suspicions(world.parts) == []
    assert settle(world.parts) == []
    world.later = timedelta(days=8)
    (settled,) = settle(world.parts)
    assert settled.ending is EvolutionEnding.UNPROVEN
    assert "stood the test" not in settled.reason
    assert "10 live runs" in settled.reason
    assert [item.when for item in world.ledger.find(Attestation)] == ["promotion"]


def test_what_nobody_used_stood_no_test(world: World, promoted: Evolution) -> None:
    world.later = timedelta(days=8)
    (settled,) = settle(world.parts)
    assert (settled.state, settled.ending) == (EvolutionState.PROMOTED, EvolutionEnding.UNUSED)
    assert settled.reason.startswith("not used since")
    assert [item.when for item in world.ledger.find(Attestation)] == ["promotion"], "nothing was observed"


TOOL = "skill/calc/tools/grade.py"
FAULTY = "def answer(points):\n    if points > 50:\n        return 'pass'\n    return 'fail'\n"


def test_a_comment_of_a_person_blinds_no_watch(world: World) -> None:
    evolution, _ = promote_wrong(world)
    world.registry.edit({TOOL: "# graded since 2019\n" + world.source()})
    assert follow(world.parts) == []
    assert len(LiveArms(world.parts, evolution).used()) == 0
    run = world.live(world.task(44, "fail"))
    assert [item.id for item in LiveArms(world.parts, evolution).counted()] == [run.id]
    (suspicion,) = suspicions(world.parts)
    ended = watch(world.parts, suspicion, run)
    assert "passes on the snapshot before it and fails since" in ended.reason


def test_a_revert_by_hand_ends_it_and_what_runs_then_is_not_held_against_it(
    world: World, promoted: Evolution
) -> None:
    world.live(world.task(71, "pass"))
    world.registry.edit({TOOL: FAULTY}, "put back")
    failed = world.live(world.failing[0])
    (ended,) = follow(world.parts)
    assert (ended.state, ended.ending) == (EvolutionState.ROLLED_BACK, EvolutionEnding.REVERTED)
    assert "a person put back" in ended.reason
    assert not ended.stands
    assert ended.is_closed, "who took it back is asked before it is tried again"
    mine(world.parts)
    assert triage(world.parts) == []
    assert failed.outcome is not None
    seen = [(item.run_id, item.fingerprint.id, item.seen_at) for item in world.ledger.find(Sighting)]
    assert promoted.ended_at is not None
    (found,) = mended(
        [ended], world.ledger.find(Evidence), {(ended.id, "probation"): promoted.ended_at}, seen
    )
    assert found.recurred_at is None
    assert found.rolled_back_at is not None
    assert follow(world.parts) == []


def test_a_settled_promotion_that_a_person_takes_back_is_followed_too(
    world: World, promoted: Evolution
) -> None:
    world.later = timedelta(days=8)
    settle(world.parts)
    world.registry.edit({TOOL: FAULTY}, "put back")
    assert follow(world.parts) == []
    (ended,) = follow(world.parts, settled=True)
    assert ended.ending is EvolutionEnding.REVERTED


def test_an_edit_by_a_person_ends_the_watch_and_the_fix_stands_no_longer(
    world: World, promoted: Evolution
) -> None:
    world.live(world.task(71, "pass"))
    world.registry.edit({TOOL: "def answer(points):\n    return 'pass' if points >= 55 else 'fail'\n"})
    (ended,) = follow(world.parts)
    assert (ended.state, ended.ending, ended.stands) == (
        EvolutionState.PROMOTED,
        EvolutionEnding.SUPERSEDED,
        False,
    )
    assert "1 live run of new, checked work until then" in ended.reason
    assert "stood" not in ended.reason
    assert [item.when for item in world.ledger.find(Attestation)] == ["promotion"]
    assert follow(world.parts, settled=True) == []


def test_a_pin_ends_the_watch_and_leaves_what_was_promoted(
    world: World, promoted: Evolution, resource: ResourceId
) -> None:
    world.registry.pinned.add(resource)
    (ended,) = follow(world.parts)
    assert (ended.state, ended.ending, ended.stands) == (
        EvolutionState.PROMOTED,
        EvolutionEnding.PINNED,
        True,
    )
    assert "0 live runs of new, checked work until then" in ended.reason


def test_a_roll_back_by_the_program_is_no_persons(world: World, promoted: Evolution) -> None:
    world.registry.revert_evolution(promoted.id, "half way", "rollback")
    assert follow(world.parts) == [], "the process that began it brings it to its end"


def test_a_guard_that_only_a_version_on_probation_passed_does_not_protect_it(world: World) -> None:
    evolution, _ = promote_wrong(world)
    alone = world.task(46, "pass")  # passes with the wrong edit alone
    world.live(alone)
    both = world.task(62, "pass")
    world.live(both)
    evidence = world.evidence()
    before = world.registry.stable()
    world.policy = replace(world.policy, evidence=Policy().evidence)
    assert alone.id not in choose_sets(world.parts, evidence, "skill/calc").guards
    world.registry._main = evolution.base
    world.live(both)
    world.registry._main = before
    keys = {
        world.ledger.task(task_id).key for task_id in choose_sets(world.parts, evidence, "skill/calc").guards
    }
    assert both.key in keys, "it passed on what stood before as well"
    assert alone.key not in keys
    world.parts.move(world.parts.evolution(evolution.id), EvolutionState.PROMOTED, "settled")
    assert alone.id in choose_sets(world.parts, evidence, "skill/calc").guards, "it is settled"


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


@pytest.mark.parametrize("other", [None, "skill/other/SKILL.md"])
def test_a_clock_that_was_put_back_hides_no_failure(world: World, other: str | None) -> None:
    """Nor does it where the registry has moved since, by something else."""
    world.later = timedelta(hours=1)
    evolution, broken_later = promote_wrong(world)
    world.later = timedelta()
    if other:
        world.registry.edit({other: "another skill"})
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
    waiting = world.evolve(world.open())  # without guards a person is asked
    approve(world.parts, waiting, "person:somebody")
    finish_promotion(world.parts, waiting.id, world.durable)
    return world.ledger.get(Evolution, waiting.id), broken


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
