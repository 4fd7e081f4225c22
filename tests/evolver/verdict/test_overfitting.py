"""An edit that mends only the tasks that were shown is refused by hidden ones that fail alike."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agentos.domain import (
    Arm,
    Candidate,
    Decision,
    EvolutionState,
    Outcome,
    Result,
    Share,
    Snapshot,
    Trial,
    TrialSet,
    Verdict,
    canonical,
)
from agentos.evolver.cycle import trials_of
from agentos.evolver.documents import policy_from_json
from agentos.evolver.policy import Judge, Policy
from agentos.evolver.verdict.gates import over_fitted, rarer
from agentos.evolver.verdict.judge import recompute
from agentos.evolver.verdict.pairing import FIRST
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
    assert "1 of 3 hidden tasks that fail alike" in first.reasons[0]
    assert second.decision is Decision.PROMOTE
    assert ended.state is EvolutionState.PROBATION
    marked = [trial for trial in world.ledger.find(Trial) if trial.alike]
    assert {trial.set for trial in marked} == {TrialSet.HOLD_OUT, TrialSet.EVIDENCE}
    (fitted,) = [item for item in world.ledger.find(Candidate) if item.id == first.candidate_id]
    assert recompute(first, fitted, trials_of(world.parts, fitted), world.policy) == []


def test_one_hidden_task_that_still_fails_is_one_too_many(world: World) -> None:
    """Both fail as the evidence does; the edit mends one of them and all that was shown."""
    world.proposer = ScriptedProposer([proposal(FITTED.replace("(46", "(43, 46"))])
    seed(world, hidden=(43, 44))
    ended = world.evolve(world.open())
    assert ended.state is EvolutionState.REJECTED
    assert "2 of 3 hidden tasks that fail alike, where 3 would be the same share" in ended.reason


@pytest.mark.parametrize(
    ("hidden", "state"),
    [((), EvolutionState.PROBATION), ((43,), EvolutionState.REJECTED), ((46.0,), EvolutionState.PROBATION)],
)
def test_a_lone_hidden_one_has_to_be_mended_too(
    world: World, hidden: tuple[int, ...], state: EvolutionState
) -> None:
    world.proposer = ScriptedProposer([proposal(FITTED)])
    seed(world, hidden)
    assert world.evolve(world.open()).state is state


def trial(task: str, *, passed: bool, hidden: bool = False, repeat: int = 0) -> Trial:
    snapshot = Snapshot("c", "t")
    outcome = Outcome(Result.PASSED if passed else Result.FAILED, float(passed), "")
    return Trial(
        f"{task}-{repeat}",
        "evo",
        "cand",
        task,
        TrialSet.EVIDENCE,
        Arm.CANDIDATE,
        repeat,
        snapshot,
        outcome,
        "",
        "fake",
        "none",
        alike=hidden,
    )


def judged(shown: str, hidden: str, rules: Judge | None = None) -> bool:
    """Whether it is over-fitted; one sign a task, + where it passes."""
    trials = [trial(f"s{at}", passed=sign == "+") for at, sign in enumerate(shown)]
    trials += [trial(f"h{at}", passed=sign == "+", hidden=True) for at, sign in enumerate(hidden)]
    return bool(over_fitted(trials, rules or Judge()))


@pytest.mark.parametrize(
    ("shown", "hidden", "fitted"),
    [
        ("++", "+", False),
        ("++", "-", True),
        ("++", "+-", True),
        ("+-", "-", False),  # a half of one is less than one
        ("+-", "--", True),
        ("+-", "+-", False),
        ("++-", "+-", False),  # two thirds of two are one
        ("++-", "++-", False),
        ("++-", "+--", True),
        ("++", "", False),
        ("", "--", False),
    ],
)
def test_the_same_share_is_asked_of_what_was_hidden(shown: str, hidden: str, fitted: bool) -> None:
    assert judged(shown, hidden) is fitted


def test_a_policy_that_was_stored_before_judges_as_it_did() -> None:
    before = policy_from_json({"judge": {"beta": 0.1}})
    assert not judged("++", "+-", before.judge)
    assert not judged("++", "-", before.judge)
    assert judged("++", "--", before.judge)
    assert policy_from_json(json.loads(canonical(Policy()))) == Policy()


def pairs(task: str, before: str, after: str, *, hidden: bool = False) -> list[Trial]:
    """Of a task that varies; + where a side passes."""
    made = []
    for at, (old, new) in enumerate(zip(before, after, strict=True)):
        own = trial(task, passed=new == "+", hidden=hidden, repeat=FIRST + at)
        base = trial(task, passed=old == "+", repeat=FIRST + at)
        made += [replace(own, number=1), replace(base, arm=Arm.BASE, alike=False, candidate_id="")]
    return made


RISEN = pairs("s1", "-+--", "++-+") + pairs("s2", "----", "+-++")


@pytest.mark.parametrize(
    ("before", "after", "fitted"),
    [
        ("--+-", "+-+-", False),  # half of the trials, no task that is mended by any mark
        ("----", "----", True),
        ("+--+", "+--+", False),  # so few of so few may be chance
        ("+-" * 8, "+-" * 8, True),
        ("----", "+---", False),
    ],
)
def test_what_varies_is_asked_for_a_gain_and_not_for_a_mark(before: str, after: str, fitted: bool) -> None:
    found = [*RISEN * 1, *pairs("h", before, after, hidden=True)]
    if len(before) > 4:
        found += [replace(one, task_id=f"{one.task_id}x") for one in RISEN * 2]
    assert bool(over_fitted(found, Judge())) is fitted


def test_by_marks_a_repair_that_lifts_every_task_is_refused_as_before() -> None:
    """Each passes in three of four, the hidden one in two: the rule of stored policies."""
    found = [
        *pairs("s1", "----", "+++-"),
        *pairs("s2", "----", "+-++"),
        *pairs("h", "----", "+-+-", hidden=True),
    ]
    assert over_fitted(found, policy_from_json({"judge": {"hidden_share": 1.0}}).judge)
    assert over_fitted(found, Judge()) is None


def test_hidden_tasks_too_bad_for_a_pair_are_held_to_the_share_still() -> None:
    shown = pairs("s1", "----", "++++") + pairs("s2", "----", "++++")
    alike = [trial("h", passed=False, hidden=True, repeat=at) for at in range(2)]
    assert over_fitted([*shown, *alike], Judge())
    assert over_fitted([*shown, *alike, trial("h", passed=True, hidden=True, repeat=2)], Judge())
    mended = [replace(one, outcome=replace(one.outcome, result=Result.PASSED)) for one in alike]
    assert over_fitted([*shown, *mended], Judge()) is None


@pytest.mark.parametrize(
    ("some", "others", "chance"),
    [((0, 4), (4, 4), 1 / 70), ((0, 3), (4, 4), 1 / 35), ((2, 2), (2, 2), 1.0), ((0, 0), (3, 4), 1.0)],
)
def test_fishers_exact_test(some: tuple[int, int], others: tuple[int, int], chance: float) -> None:
    assert rarer(some, others) == pytest.approx(chance)


def test_what_varies_may_fail_at_times() -> None:
    steady = [trial("s", passed=True, repeat=at) for at in range(8)]
    mostly = [trial("h", passed=at > 0, hidden=True, repeat=at) for at in range(8)]
    seldom = [trial("h", passed=at > 4, hidden=True, repeat=at) for at in range(8)]
    assert over_fitted([*steady, *mostly], Judge()) is None
    assert over_fitted([*steady, *seldom], Judge())


def test_what_cannot_be_replayed_counts_on_neither_side() -> None:
    lost = replace(trial("h", passed=False, hidden=True), outcome=Outcome(Result.NOT_REPLAYABLE, 0.0, ""))
    assert over_fitted([trial("s", passed=True), lost], Judge()) is None
