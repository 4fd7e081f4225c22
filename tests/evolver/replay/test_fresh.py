"""An edit that waits is tried on work that came after it: what is fresh, what it says, and ways around it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agentos.domain import (
    Arm,
    Candidate,
    Check,
    Consent,
    Decision,
    Evolution,
    EvolutionState,
    RefusalKind,
    Result,
    Share,
    Snapshot,
    Task,
    Trial,
    TrialSet,
    Verdict,
    work_of,
)
from agentos.errors import Conflict
from agentos.evolver.cycle import evolve, finish_promotion, fresh_due, trials_of, try_fresh
from agentos.evolver.documents import policy_from_json
from agentos.evolver.policy import Judge, Policy, ReplayPolicy
from agentos.evolver.promote.promotion import approve
from agentos.evolver.promote.rebasing import misplaced, settle_overtaken
from agentos.evolver.promote.reexamination import known_sets, refusing
from agentos.evolver.replay.verification import untimely
from agentos.evolver.select.curate import LookCounter, used_up
from agentos.evolver.verdict.doubts import FreshWork, doubts, fresh_work
from agentos.evolver.verdict.judge import recompute
from agentos.evolver.verdict.pairing import apart, split
from agentos.ports import Attempt
from agentos.testing import FakeExecutor, FakeRegistry, MemoryLedger
from tests.evolver.propose.test_behaviour import LostBenches, PartlyLostBenches

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
from local_bench import LocalBenches

if TYPE_CHECKING:
    from conftest import World

    from agentos.evolver.dependencies import Dependencies

PATH = "skill/calc/tools/grade.py"
FAULTY = "def answer(points, needed=50):\n    if points > needed:\n        return 'pass'\n    return 'fail'\n"
RIGHT = FAULTY.replace("> needed", ">= needed")
# passes all that is known: 48 was never asked for
OVERFITTED = FAULTY.replace("> needed", ">= needed or points == 48")
HALF = FAULTY.replace("points > needed", "points > needed or points == needed == 50")
THREE = Policy(judge=Judge(fresh_tasks=3, fresh_most=6, fresh_mended=0))
TELLING = Policy(judge=Judge(fresh_tasks=3, fresh_most=9, fresh_mended=2))
NEW = ((61, "pass"), (12, "fail"), (77, "pass"))


def waiting(world: World, source: str = RIGHT, policy: Policy = THREE) -> Evolution:
    """An evolution whose edit has to wait for fresh work."""
    world.policy = policy
    world.registry = FakeRegistry({PATH: FAULTY, "skill/calc/SKILL.md": "x"})
    world.proposer.proposals[:] = [replace(world.proposer.proposals[0], files={PATH: source})]
    world.seed(hidden=((45, "fail"),))
    ended = world.evolve(world.open())
    assert ended.state is EvolutionState.AWAITING_CONSENT
    return ended


def go_on(world: World, evolution: Evolution) -> Evolution:
    """What the daemon does when runs have finished: as often as there is something to be tried."""
    while evolution.id in fresh_due(world.parts):
        try_fresh(world.parts, evolution.id)
        if world.ledger.find(Consent, evolution_id=evolution.id):
            finish_promotion(world.parts, evolution.id, world.durable)
    return world.ledger.get(Evolution, evolution.id)


def tried(world: World) -> list[str]:
    return sorted({trial.task_id for trial in world.ledger.find(Trial) if trial.set is TrialSet.FRESH})


def candidate_of(world: World) -> Candidate:
    (candidate,) = world.ledger.find(Candidate)
    return candidate


def fresh_of(world: World) -> FreshWork:
    candidate = candidate_of(world)
    return fresh_work(candidate, trials_of(world.parts, candidate), world.policy)


_numbers = count()


def refile(world: World, task: Task, share: Share = Share.OPEN, **over: Any) -> Task:
    """Another task made of this one."""
    made = replace(task, id=f"task-made-{next(_numbers)}", **over)
    world.ledger.add_task(made, share)
    return made


def asked(world: World, points: int, expected: str, share: Share = Share.OPEN, **over: Any) -> Task:
    """A new task that has run once."""
    made = refile(world, world.task(points, expected, share), share, **over)
    world.live(made, share)
    return made


def test_what_cannot_be_replayed_on_the_base_is_not_mended(world: World) -> None:
    """It failed live, and whether it would again nobody knows: the edit may only have left out what is not on record."""
    evolution = waiting(world)
    task = boundary(world, 70)
    as_ever, base = world.executor, candidate_of(world).base.tree

    def lost(asked: Task, snapshot: Snapshot) -> Attempt:
        done = as_ever.execute(asked, snapshot, "run-again")
        away = replace(done.outcome, result=Result.NOT_REPLAYABLE)
        return replace(done, outcome=away) if snapshot.tree == base and asked.id == task.id else done

    world.executor = FakeExecutor(lost)
    try_fresh(world.parts, evolution.id)
    assert fresh_of(world).mended == fresh_of(world).passed == ()


def boundary(world: World, needed: int) -> Task:
    """New work that fails as the evidence did."""
    call = world.failing[0].call
    assert call is not None
    made = refile(world, world.failing[0], call=replace(call, args={"points": needed, "needed": needed}))
    world.live(made)
    return made


def test_enough_fresh_work_promotes_without_anybody_being_asked(world: World) -> None:
    evolution = waiting(world)
    for points, expected in NEW[:2]:
        asked(world, points, expected)
    evolution = go_on(world, evolution)
    assert evolution.state is EvolutionState.AWAITING_CONSENT
    assert "1 more checked task of skill/calc (2 of 3 so far)" in evolution.reason
    asked(world, *NEW[2])
    assert go_on(world, evolution).state is EvolutionState.PROBATION
    assert world.source() == RIGHT
    first, last = world.ledger.find(Verdict)
    assert (first.decision, last.decision) == (Decision.PROMOTE, Decision.PROMOTE)
    (consent,) = world.ledger.find(Consent)
    assert consent.principal == "policy:medium=auto"
    for verdict in (first, last):
        candidate = candidate_of(world)
        assert recompute(verdict, candidate, trials_of(world.parts, candidate), THREE) == []


def test_a_fresh_task_that_failed_before_counts_and_is_named_as_mended(world: World) -> None:
    evolution = waiting(world)
    mended = boundary(world, 40)
    asked(world, 61, "pass")
    evolution = go_on(world, evolution)
    assert "(2 of 3 so far, 1 of them failed before)" in evolution.reason
    asked(world, 77, "pass")
    assert go_on(world, evolution).state is EvolutionState.PROBATION
    assert mended.id in world.ledger.find(Verdict)[-1].fixed


def test_work_that_passes_on_both_sides_alone_does_not_show_that_what_changed_is_right(world: World) -> None:
    """Any number of easy tasks, filed for an edit that waits."""
    evolution = waiting(world, policy=TELLING)
    for points, expected in (*NEW, (62, "pass"), (13, "fail"), (78, "pass")):
        asked(world, points, expected)
    evolution = go_on(world, evolution)
    assert evolution.state is EvolutionState.AWAITING_CONSENT
    fresh = fresh_of(world)
    assert (len(fresh.passed), len(fresh.mended), fresh.missing) == (6, 0, 2)
    assert (
        "2 more checked tasks of skill/calc that it fails now (6 of 3 so far, 0 of 2 that failed before)"
        in evolution.reason
    )
    boundary(world, 40)
    assert go_on(world, evolution).state is EvolutionState.AWAITING_CONSENT
    boundary(world, 30)
    assert go_on(world, evolution).state is EvolutionState.PROBATION
    candidate = candidate_of(world)
    for verdict in world.ledger.find(Verdict):
        assert recompute(verdict, candidate, trials_of(world.parts, candidate), TELLING) == []


def test_one_answer_to_all_that_it_mends_is_not_enough_where_the_evidence_has_several(world: World) -> None:
    evolution = waiting(world, policy=TELLING)
    for number in (40, 30, 20):
        boundary(world, number)
    try_fresh(world.parts, evolution.id)
    candidate, trials = candidate_of(world), trials_of(world.parts, candidate_of(world))
    assert fresh_work(candidate, trials, TELLING).missing == 0, "the evidence has one answer too"
    several = [
        replace(trial, answer_sha256=trial.task_id) if trial.set is TrialSet.EVIDENCE else trial
        for trial in trials
    ]
    told = fresh_work(candidate, several, TELLING)
    assert (told.answers, told.answers_wanted, told.missing) == (1, 2, 1)
    assert len(told.doubts()) == 1
    first = next(trial.task_id for trial in trials if trial.set is TrialSet.FRESH)
    other = [replace(trial, answer_sha256="other") if trial.task_id == first else trial for trial in several]
    assert fresh_work(candidate, other, TELLING).doubts() == []


def test_a_verdict_of_before_is_computed_again_without_them() -> None:
    stored = policy_from_json({"judge": {"fresh_tasks": 20}})
    assert (stored.judge.fresh_mended, stored.judge.fresh_answers) == (0, 0), "a verdict of before"
    assert (Judge().fresh_mended, Judge().fresh_answers) == (5, 2)


@pytest.mark.parametrize("share", list(Share))
def test_fresh_work_that_passes_on_the_base_and_fails_with_it_ends_the_wait(
    world: World, share: Share
) -> None:
    evolution = waiting(world, OVERFITTED)
    for points in (61, 62):
        asked(world, points, "pass")
    assert go_on(world, evolution).state is EvolutionState.AWAITING_CONSENT
    telling = asked(world, 48, "fail", share)
    ended = go_on(world, evolution)
    assert ended.state is EvolutionState.REJECTED
    assert (telling.id in ended.reason) is (share is Share.OPEN), "a hidden task is named nowhere"
    assert world.source() == FAULTY
    verdict = world.ledger.find(Verdict)[-1]
    assert (verdict.decision, verdict.broken) == (Decision.REJECT, (telling.id,))
    assert recompute(verdict, candidate_of(world), trials_of(world.parts, candidate_of(world)), THREE) == []
    assert telling.id not in verdict.reasons[0]


def test_an_edit_that_fell_on_hidden_fresh_work_has_looked_at_it(world: World) -> None:
    """The next candidate may be chosen by it, so it counts among the looks at a hidden task."""
    evolution = waiting(world, OVERFITTED)
    telling = asked(world, 48, "fail", Share.HOLD_OUT)
    assert go_on(world, evolution).state is EvolutionState.REJECTED
    once = replace(world.parts, policy=Policy(judge=replace(THREE.judge, hold_out_looks=1)))
    assert work_of(telling) in used_up(once, evolution.fingerprint_id)
    assert work_of(telling) not in used_up(world.parts, evolution.fingerprint_id)
    later = replace(candidate_of(world), id="cand-later")
    assert LookCounter(world.parts, later).at(telling, TrialSet.HOLD_OUT) == 2


def test_fresh_work_that_fails_still_as_the_evidence_did_is_told_and_promotes_nothing(world: World) -> None:
    evolution = waiting(world, HALF)
    boundary(world, 40)
    for points in (61, 62, 63):
        asked(world, points, "pass")
    evolution = go_on(world, evolution)
    assert evolution.state is EvolutionState.AWAITING_CONSENT
    assert (len(fresh_of(world).unmended), fresh_of(world).missing) == (1, 0)
    assert evolution.reason == fresh_of(world).doubts()[0].reason
    approve(world.parts, evolution, "person:ada")  # who may promote it all the same
    assert finish_promotion(world.parts, evolution.id, world.durable) is EvolutionState.PROBATION


# --- ways around it -----------------------------------------------------------------------------


def refiled(world: World) -> None:
    """The same work under other names, with other checks; and once more the very tasks."""
    for task in (*world.failing, *world.early):
        world.live(refile(world, task, goal="asked for anew", name="another", checks=task.checks * 2))
        world.live(task)


def twice(world: World) -> None:
    """One new task, and copies of it."""
    task = asked(world, 61, "pass")
    for number in range(4):
        world.live(refile(world, task, goal=f"copy {number}"))


def unchecked(world: World) -> None:
    for points in range(61, 67):
        asked(world, points, "pass", checks=())


def elsewhere(world: World) -> None:
    """Work of the tool that never enters what is edited."""
    world.executor = FakeExecutor(lambda task, snapshot: replace(world._script(task, snapshot), reached=()))
    for points in range(61, 67):
        asked(world, points, "pass")


def imported(world: World) -> None:
    for points in range(61, 67):
        world.live(world.task(points, "pass"), sandbox="import")


def of_another_version(world: World) -> None:
    world.registry.edit({PATH: FAULTY.replace("> needed", "> needed - 20")})
    for points in range(61, 67):
        asked(world, points, "pass")
    world.registry.edit({PATH: FAULTY})


def handed_over(world: World) -> None:
    """Tasks that runs handed over are made up by what evolves."""
    for points in range(61, 67):
        asked(world, points, "pass", parent="run-of-a-tool")


def asking_models(world: World) -> None:
    plain = world._script

    def asks(task: Task, snapshot: Snapshot) -> Attempt:
        done = plain(task, snapshot)
        return replace(done, outcome=replace(done.outcome, cost=replace(done.outcome.cost, calls=1)))

    world._script = asks  # type: ignore[method-assign]
    for points in range(61, 67):
        asked(world, points, "pass")


def dated_forward(world: World) -> None:
    """Tasks that were there before the edit, first run after it, and said to be of the next year."""
    for task in world.early:
        world.live(task)


@pytest.mark.parametrize(
    "attack",
    [
        refiled,
        twice,
        unchecked,
        elsewhere,
        imported,
        of_another_version,
        handed_over,
        asking_models,
        dated_forward,
    ],
)
def test_work_that_is_not_fresh_promotes_nothing(world: World, attack: Callable[[World], None]) -> None:
    dated = world.now() + timedelta(days=400)
    world.early = [refile(world, world.task(points, "pass"), created_at=dated) for points in range(71, 77)]
    evolution = waiting(world)
    attack(world)
    evolution = go_on(world, evolution)
    assert evolution.state is EvolutionState.AWAITING_CONSENT
    assert len(fresh_of(world).passed) == (1 if attack is twice else 0)
    assert world.ledger.find(Consent) == []
    assert world.source() == FAULTY


def test_a_clock_that_was_put_back_makes_new_work_no_older(world: World) -> None:
    evolution = waiting(world)
    for points, expected in NEW:
        asked(world, points, expected, created_at=world.now() - timedelta(days=400))
    assert go_on(world, evolution).state is EvolutionState.PROBATION


def test_a_flood_of_fresh_work_costs_a_bounded_number_of_trials(world: World) -> None:
    evolution = waiting(world)
    elsewhere(world)
    for points in range(101, 160):
        asked(world, points, "pass")
    assert fresh_due(world.parts) == [evolution.id]
    try_fresh(world.parts, evolution.id)
    assert len(tried(world)) == 3, "a few at a time"
    go_on(world, evolution)
    assert len(tried(world)) == 6
    assert fresh_due(world.parts) == []


class Killed(Exception):
    """The process is gone."""


@dataclass
class Writes:
    """The ledger, until it is written to once too often."""

    ledger: MemoryLedger
    left: int

    def __getattr__(self, name: str) -> Any:
        if name in ("put", "advance", "note"):
            self.left -= 1
            if self.left < 0:
                raise Killed
        return getattr(self.ledger, name)


@pytest.mark.parametrize("writes", range(6))
def test_a_kill_anywhere_repeats_no_trial_and_loses_nothing(world: World, writes: int) -> None:
    evolution = waiting(world)
    for points, expected in NEW:
        asked(world, points, expected)
    ledger = Writes(world.ledger, writes)
    with suppress(Killed):
        try_fresh(replace(world.parts, records=ledger, cursor=ledger, audit=ledger), evolution.id)
        assert writes == 5, "that is all of them"
    assert go_on(world, evolution).state is EvolutionState.PROBATION
    assert len([trial for trial in world.ledger.find(Trial) if trial.set is TrialSet.FRESH]) == 6
    assert (len(world.ledger.find(Verdict)), len(world.ledger.find(Consent))) == (2, 1)


@pytest.mark.parametrize("writes", range(5))
def test_a_kill_leaves_no_edit_rejected_on_fewer_trials_than_are_promised(world: World, writes: int) -> None:
    evolution = waiting(world, OVERFITTED)
    telling = asked(world, 48, "fail")
    ledger = Writes(world.ledger, writes)
    with suppress(Killed):
        try_fresh(replace(world.parts, records=ledger, cursor=ledger, audit=ledger), evolution.id)
    assert go_on(world, evolution).state is EvolutionState.REJECTED
    arms = Counter(trial.arm for trial in world.ledger.find(Trial) if trial.task_id == telling.id)
    assert set(arms.values()) == {world.policy.replay.repeats}


def test_a_person_s_word_on_the_first_verdict_stands_when_fresh_work_says_the_same(world: World) -> None:
    evolution = waiting(world)
    for points, expected in NEW:
        asked(world, points, expected)
    consent = approve(world.parts, evolution, "person:ada")
    ledger = Writes(world.ledger, 4)  # killed before the policy's own consent
    with suppress(Killed):
        try_fresh(replace(world.parts, records=ledger, cursor=ledger, audit=ledger), evolution.id)
    assert len(world.ledger.find(Verdict)) == 2
    assert world.ledger.find(Consent) == [consent]
    assert finish_promotion(world.parts, evolution.id, world.durable) is EvolutionState.PROBATION


def test_a_person_s_word_does_not_outlive_fresh_work_that_breaks(world: World) -> None:
    evolution = waiting(world, OVERFITTED)
    asked(world, 48, "fail")
    approve(world.parts, evolution, "person:ada")
    try_fresh(world.parts, evolution.id)
    assert world.ledger.get(Evolution, evolution.id).state is EvolutionState.REJECTED
    with pytest.raises(Conflict):
        finish_promotion(world.parts, evolution.id, world.durable)


def test_a_person_who_edits_the_tool_meanwhile_ends_the_trial_of_fresh_work(world: World) -> None:
    evolution = waiting(world)
    for points, expected in NEW:
        asked(world, points, expected)
    world.registry.edit({PATH: FAULTY.replace("'fail'", "'failed'")})
    assert fresh_due(world.parts) == []
    assert try_fresh(world.parts, evolution.id) == EvolutionState.AWAITING_CONSENT
    assert tried(world) == []
    assert settle_overtaken(world.parts, evolution)
    assert world.ledger.get(Evolution, evolution.id).state is EvolutionState.STALE


def test_work_that_ends_otherwise_on_the_base_than_live_says_nothing(world: World) -> None:
    evolution = waiting(world)
    world.flaky.update(asked(world, points, expected).id for points, expected in NEW)  # from now on
    assert go_on(world, evolution).state is EvolutionState.AWAITING_CONSENT
    assert (fresh_of(world).passed, fresh_of(world).broken) == ((), ())


def test_an_edit_on_a_newer_base_goes_on_with_what_it_has(world: World) -> None:
    world.executor = FakeExecutor(
        world._script, lambda task, snapshot: str(world.registry.files(snapshot, PATH))
    )
    evolution = waiting(world)
    asked(world, *NEW[0])
    go_on(world, evolution)
    world.registry.edit({"prompt/other/prompt.md": "another resource"})
    assert not settle_overtaken(world.parts, evolution)
    for points, expected in NEW[1:]:
        asked(world, points, expected)
    assert go_on(world, evolution).state is EvolutionState.PROBATION
    candidate = candidate_of(world)
    assert candidate.rebase is not None
    assert list(misplaced(world.registry, candidate, world.trials())) == []


def test_work_that_is_called_fresh_and_was_there_before_is_found_offline(world: World) -> None:
    evolution = waiting(world)
    asked(world, *NEW[0])
    go_on(world, evolution)
    candidate, arrived = candidate_of(world), world.ledger.arrived
    assert list(untimely(candidate, world.trials(), arrived)) == []
    for known in (arrived(), None):
        assert len([*untimely(replace(candidate, known_tasks=known), world.trials(), arrived)]) == 2


# --- asked again with the fresh tasks among the known ones -------------------------------------

TYPED = (
    '''"""A tool."""

from pydantic import BaseModel, RootModel

TOOL = {"name": "grade", "description": "Works.", "effects": []}


class Input(BaseModel):
    points: int
    needed: int = 50


class Output(RootModel[str]):
    pass


def run(input: Input) -> Output:
    return Output(answer(input.points, input.needed))


'''
    + FAULTY
)
CAPPED = TYPED.replace("> needed", ">= min(needed, 100)")  # of the 100 nothing known tells what it is for
FEW_INPUTS = ReplayPolicy(neighbours=16, mutants=8, crossed=8, stepped=16, spelled=4, drawn=2)
AGAIN = Policy(judge=Judge(fresh_tasks=4, fresh_most=16, fresh_mended=2), replay=FEW_INPUTS)
MEETING = ((40, 40, "pass"), (100, 105, "pass"), (99, 105, "fail"), (30, 60, "fail"))  # they do
MISSING = ((40, 40, "pass"), (30, 30, "pass"), (20, 60, "fail"), (70, 60, "pass"))


def benched(world: World) -> Dependencies:
    """With a bench, so that what was found on the known tasks is found again."""
    return replace(world.parts, benches=LocalBenches())


def doubted(world: World, source: str = CAPPED, policy: Policy = AGAIN) -> Evolution:
    """An evolution whose edit a person is asked about for what nothing known tells."""
    world.policy = policy
    world.registry = FakeRegistry({PATH: TYPED, "skill/calc/SKILL.md": "x"})
    world.proposer.proposals[:] = [replace(world.proposer.proposals[0], files={PATH: source})]
    world.seed()
    opened = world.open()
    evolve(benched(world), opened.id, world.durable)
    ended = world.ledger.get(Evolution, opened.id)
    assert ended.state is EvolutionState.AWAITING_CONSENT
    assert RefusalKind.LOOSENED in kinds_asked(world)
    return ended


def kinds_asked(world: World) -> list[RefusalKind]:
    candidate = candidate_of(world)
    return [doubt.kind for doubt in doubts(candidate, trials_of(world.parts, candidate), world.policy)]


def came(world: World, work: tuple[tuple[int, int, str], ...], **over: Any) -> list[Task]:
    call = world.failing[0].call
    assert call is not None
    made = []
    for points, needed, expected in work:
        own = replace(call, args={"points": points, "needed": needed})
        given = {"checks": (Check("equals", {"value": expected}),), "goal": f"{points} of {needed}"} | over
        made.append(refile(world, world.failing[0], call=own, **given))
        world.live(made[-1])
    return made


def settle(world: World, evolution: Evolution) -> Evolution:
    parts = benched(world)
    while evolution.id in fresh_due(parts):
        try_fresh(parts, evolution.id)
        if world.ledger.find(Consent, evolution_id=evolution.id):
            finish_promotion(parts, evolution.id, world.durable)
    return world.ledger.get(Evolution, evolution.id)


def test_fresh_work_that_tells_what_was_asked_ends_the_question(world: World) -> None:
    evolution = doubted(world)
    first = candidate_of(world).behaviour
    tasks = came(world, MEETING)
    assert settle(world, evolution).state is EvolutionState.PROBATION
    candidate = candidate_of(world)
    assert candidate.behaviour == first, "what was seen at first stays on record"
    assert candidate.reexamination is not None
    assert set(candidate.reexamination.task_ids) == {task.id for task in tasks}
    trials = trials_of(world.parts, candidate)
    for verdict in world.ledger.find(Verdict):
        assert recompute(verdict, candidate, trials, AGAIN) == []
    before = replace(AGAIN, edition=8)
    assert RefusalKind.LOOSENED in {doubt.kind for doubt in doubts(candidate, trials, before)}


def test_fresh_work_that_misses_what_was_asked_ends_no_question(world: World) -> None:
    evolution = doubted(world)
    came(world, MISSING)
    evolution = settle(world, evolution)
    assert evolution.state is EvolutionState.AWAITING_CONSENT
    assert kinds_asked(world) == [RefusalKind.LOOSENED]
    again = candidate_of(world).reexamination
    assert again is not None
    assert fresh_due(benched(world)) == [], "not again for the same tasks"
    came(world, ((10, 10, "pass"), (11, 60, "fail")))
    settle(world, evolution)
    assert candidate_of(world).reexamination == again, "nor for two more"
    came(world, MEETING[1:3])
    assert settle(world, evolution).state is EvolutionState.PROBATION


WRONG = CAPPED.replace("100", "95")  # of 99 points for 105 it says the opposite


def made_up_by_a_run(world: World) -> None:
    came(world, MEETING, parent="run-of-a-tool")


def without_checks(world: World) -> None:
    came(world, MEETING, checks=())


def known_before(world: World) -> None:
    for task in (*world.failing, *world.early):
        world.live(refile(world, task, goal="once more", name="another"))


def far_away(world: World) -> None:
    came(world, tuple((points, 60, "fail") for points in range(20, 30)))
    came(world, ((40, 40, "pass"), (41, 41, "pass")))


@pytest.mark.parametrize("attack", [made_up_by_a_run, without_checks, known_before, far_away])
def test_other_work_ends_no_question_about_a_wrong_edit(
    world: World, attack: Callable[[World], None]
) -> None:
    world.early = [world.task(points, "pass") for points in range(71, 77)]
    evolution = doubted(world, WRONG)
    attack(world)
    evolution = settle(world, evolution)
    assert evolution.state is EvolutionState.AWAITING_CONSENT
    assert RefusalKind.LOOSENED in kinds_asked(world)
    assert world.ledger.find(Consent) == []


def test_a_wrong_edit_that_fresh_work_meets_is_rejected_whatever_is_asked(world: World) -> None:
    evolution = doubted(world, WRONG)
    came(world, MEETING)
    assert settle(world, evolution).state is EvolutionState.REJECTED


def test_a_tell_in_the_code_is_asked_about_whatever_fresh_work_says(world: World) -> None:
    tell = CAPPED.replace("from pydantic", "import time\n\nfrom pydantic").replace(
        "100)", "100 + (time.time() < 0))"
    )
    evolution = doubted(world, tell)
    came(world, MEETING)
    assert settle(world, evolution).state is EvolutionState.AWAITING_CONSENT
    assert candidate_of(world).reexamination is None, "a person is asked in any case"


def test_checks_that_pass_for_everything_tell_nothing_apart(world: World) -> None:
    doubted(world)
    told = came(world, MEETING)
    plain = world._script

    def checked(task: Task, snapshot: Snapshot) -> Attempt:
        given = task if task.checks[0].kind == "equals" else replace(task, checks=(equals,))
        return plain(given, snapshot)

    world._script = checked  # type: ignore[method-assign]
    equals, anything = Check("equals", {"value": "fail"}), Check("contains", {"value": ""})
    vague = came(world, ((31, 60, "fail"), (32, 60, "fail")), checks=(anything,))
    pattern = came(world, ((33, 60, "fail"),), checks=(Check("regex", {"pattern": "."}),))
    ids, known = [task.id for task in (*told, *vague, *pattern)], candidate_of(world).behaviour
    assert known is not None
    assert refusing(world.parts, ids, known.known) == tuple(task.id for task in told)
    assert refusing(world.parts, [told[3].id], ()) == (), "there is nothing to refuse"


def test_what_was_compared_at_first_is_compared_again_where_it_turned_out_unsteady(world: World) -> None:
    doubted(world)
    candidate = candidate_of(world)
    assert candidate.behaviour is not None
    trials = list(trials_of(world.parts, candidate))
    guard = next(trial for trial in trials if trial.set is TrialSet.GUARD and trial.arm is Arm.BASE)
    failed = replace(guard.outcome, result=Result.FAILED)
    unsteady = [*trials, replace(guard, id="trial-unsteady", outcome=failed)]
    assert apart(split(unsteady)[0]), "one of its trials disagrees with the others"
    sets = known_sets(world.parts, candidate, unsteady, ())
    assert not {*sets.varying} & {*candidate.behaviour.known}
    assert {*sets.shown, *sets.guards} >= {*candidate.behaviour.known}


@pytest.mark.parametrize("benches", [LostBenches, PartlyLostBenches])
def test_what_was_asked_stays_where_some_of_it_cannot_be_tried_again(
    world: World, benches: type[LocalBenches]
) -> None:
    evolution = doubted(world, policy=replace(AGAIN, replay=replace(FEW_INPUTS, mutants=16)))
    came(world, MEETING)
    asked = kinds_asked(world)
    parts = replace(world.parts, benches=benches())
    try_fresh(parts, evolution.id)
    candidate = candidate_of(world)
    assert candidate.reexamination is not None
    assert candidate.reexamination.behaviour == candidate.behaviour
    assert fresh_due(parts) == [], "it is not tried over and over"
    assert kinds_asked(world) == [kind for kind in asked if kind is not RefusalKind.FRESH]
    assert world.ledger.find(Consent) == []


@pytest.mark.parametrize("writes", [8, 9, 10])
def test_a_kill_while_it_is_asked_again_loses_nothing(world: World, writes: int) -> None:
    evolution = doubted(world)
    came(world, MEETING)
    ledger = Writes(world.ledger, writes)
    with suppress(Killed):
        parts = replace(benched(world), records=ledger, cursor=ledger, audit=ledger)
        try_fresh(parts, evolution.id)
    ended = settle(world, evolution)
    assert ended.state is EvolutionState.PROBATION, ended.reason
    arms = [trial.arm for trial in world.ledger.find(Trial) if trial.set is TrialSet.FRESH]
    assert Counter(arms) == {Arm.BASE: 4, Arm.CANDIDATE: 4}
    assert (len(world.ledger.find(Verdict)), len(world.ledger.find(Consent))) == (2, 1)
