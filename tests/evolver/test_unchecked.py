"""Work without checks teaches nothing good, and what was edited has to have run: the gates, and ways around them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agentos.domain import (
    Arm,
    Candidate,
    Consent,
    Decision,
    Evolution,
    EvolutionState,
    RefusalKind,
    Share,
    Task,
    Trial,
    TrialSet,
    Verdict,
)
from agentos.errors import PromotionRefused
from agentos.evolver.cycle import finish_promotion
from agentos.evolver.promote.consent import Approval, expiry, issue
from agentos.evolver.promote.promotion import approve, promote
from agentos.evolver.select.curate import choose_sets
from agentos.evolver.verdict.doubts import doubts, guarding
from agentos.evolver.verdict.judge import judge, recompute
from agentos.evolver.verdict.pairing import judged_trials

if TYPE_CHECKING:
    from conftest import World

PATH = "skill/calc/tools/grade.py"
STRICT = (
    "def answer(points):\n"
    "    if points == 50:\n"
    "        raise ValueError('a border case')\n"
    "    return 'pass' if points > 50 else 'fail'\n"
)


def without_checks(world: World, task: Task) -> Task:
    bare = replace(task, id=f"{task.id}-bare", goal=f"{task.goal} somehow", checks=())
    world.ledger.add_task(bare, Share.OPEN)
    return bare


def strip_evidence(world: World) -> None:
    """The evidence crashes and has no checks; guards and hold-out have theirs."""
    world.registry.edit({PATH: STRICT})
    for points in ((60, "pass"), (90, "pass"), (10, "fail"), (49, "fail")):
        world.live(world.task(*points))
    for points in (50, 50.0):
        world.live(without_checks(world, world.task(points, "pass")))  # type: ignore[arg-type]


def proposing(world: World, source: str) -> None:
    first = world.proposer.proposals[0]
    world.proposer = type(world.proposer)([replace(first, files={PATH: source})])


def ended(world: World) -> Evolution:
    return world.evolve(world.open())


def judged(world: World) -> tuple[Candidate, list[Trial], Verdict]:
    (candidate,) = world.ledger.find(Candidate)
    (verdict,) = world.ledger.find(Verdict)
    return candidate, judged_trials(candidate, world.trials()), verdict


# --- work without checks ------------------------------------------------------------------------


def test_a_crash_opens_evidence_and_its_raise_cannot_be_edited_away(world: World) -> None:
    """Row 2 of issue 11: any answer counted as a repair of work without checks."""
    strip_evidence(world)
    proposing(world, STRICT.replace("    if points == 50:\n        raise ValueError('a border case')\n", ""))
    evolution = ended(world)
    assert evolution.state is EvolutionState.CANNOT_FIX
    assert "raise ValueError('a border case')" in evolution.reason
    assert world.source() == STRICT


def test_where_the_only_gain_is_without_checks_a_person_is_asked(world: World) -> None:
    world.registry.edit(
        {PATH: "def answer(points):\n    return {60: 'pass', 90: 'pass', 10: 'fail', 49: 'fail'}[points]\n"}
    )
    for points in ((60, "pass"), (90, "pass"), (10, "fail"), (49, "fail")):
        world.live(world.task(*points))
    for points in (50, 50.0):
        world.live(without_checks(world, world.task(points, "pass")))  # type: ignore[arg-type]
    proposing(
        world,
        "def answer(points):\n    return {60: 'pass', 90: 'pass', 10: 'fail', 49: 'fail'}.get(points, 'sky')\n",
    )
    evolution = ended(world)
    assert evolution.state is EvolutionState.AWAITING_CONSENT
    assert "its only gain is work without checks" in evolution.reason
    _, _, verdict = judged(world)
    assert verdict.decision is Decision.PROMOTE
    assert verdict.fixed == ()
    approve(world.parts, evolution, "person:somebody")
    assert finish_promotion(world.parts, evolution.id, world.durable) is EvolutionState.PROBATION


def test_an_edit_that_only_ends_work_without_checks_did_change_how_a_task_ends(world: World) -> None:
    """One of two kinds of evidence answers with it: it is refused for the other, and did something."""
    world.registry.edit({PATH: "def answer(points):\n    return {60: 'pass', 10: 'fail'}[points]\n"})
    for points in ((60, "pass"), (10, "fail")):
        world.live(world.task(*points))
    world.live(without_checks(world, world.task(50, "pass")))
    world.live(world.task(51, "pass"))
    proposing(world, "def answer(points):\n    return {60: 'pass', 10: 'fail'}.get(points, 'sky')\n")
    evolution = ended(world)
    assert judged(world)[2].fixed == ()
    assert evolution.state is EvolutionState.REJECTED
    assert "failing evidence tasks pass with it" in evolution.reason


def test_work_without_checks_is_no_guard_and_no_hold_out(world: World) -> None:
    world.seed()
    bare = [world.live(without_checks(world, world.task(points, "pass"))) for points in (70, 80)]
    hidden = replace(world.task(75, "pass", Share.HOLD_OUT), id="task-hidden", goal="hidden", checks=())
    world.ledger.add_task(hidden, Share.HOLD_OUT)
    world.live(hidden, Share.HOLD_OUT)
    sets = choose_sets(world.parts, _evidence(world), "skill/calc")
    assert len(sets.guards) == 4
    assert not {run.task_id for run in bare} & {*sets.guards, *sets.hold_out}
    assert hidden.id not in sets.hold_out


def _evidence(world: World):  # type: ignore[no-untyped-def] # an Evidence
    world.open()
    return world.evidence()


def unchecked(trials: list[Trial], *which: TrialSet) -> list[Trial]:
    return [
        replace(trial, outcome=replace(trial.outcome, checks=())) if trial.set in which else trial
        for trial in trials
    ]


def test_a_mended_task_without_checks_is_not_fixed_beside_one_that_is(world: World) -> None:
    world.seed()
    ended(world)
    candidate, trials, verdict = judged(world)
    # fewer that are fixed would take more trials to tell
    looked = [replace(trial, look=0) for trial in trials]
    bare = [
        replace(trial, outcome=replace(trial.outcome, checks=()))
        if trial.task_id == verdict.fixed[0]
        else trial
        for trial in looked
    ]
    again = judge(candidate, bare, world.policy)
    assert again.decision is Decision.PROMOTE
    assert again.fixed == verdict.fixed[1:]
    assert RefusalKind.UNCHECKED not in [doubt.kind for doubt in doubts(candidate, bare, world.policy)]


def test_what_only_ends_now_does_not_make_up_for_what_is_still_wrong(world: World) -> None:
    """One task with checks stays wrong; three without end: half of all is mended, and nothing is."""
    world.seed()
    ended(world)
    candidate, trials, verdict = judged(world)
    kept, other = verdict.fixed
    failed = next(t.outcome for t in trials if t.task_id == kept and t.arm is Arm.BASE)
    made = [
        replace(trial, outcome=failed) if trial.task_id == kept and trial.arm is Arm.CANDIDATE else trial
        for trial in trials
    ]
    made = [
        replace(trial, outcome=replace(trial.outcome, checks=())) if trial.task_id == other else trial
        for trial in made
    ]
    made += [replace(trial, id=f"{trial.id}-x", task_id="task-x") for trial in made if trial.task_id == other]
    assert judge(candidate, made, world.policy).decision is Decision.REJECT


# --- nothing beside the evidence ----------------------------------------------------------------


def test_without_guards_and_hold_out_a_person_is_asked_however_much_evidence_there_is(world: World) -> None:
    """Row 6: `min_tasks` counted the evidence itself."""
    for points in (50, 50.0, True + 49):
        task = replace(world.task(50, "pass"), goal=f"grade {points!r} {len(world.ledger.states)}")
        task = replace(task, id=f"{task.id}-e")
        world.ledger.add_task(task, Share.OPEN)
        world.live(task)
    evolution = ended(world)
    assert evolution.state is EvolutionState.AWAITING_CONSENT
    assert "of guards and hold-out tasks with checks, 0 pass" in evolution.reason
    assert world.ledger.find(Consent) == []


@pytest.mark.parametrize("min_tasks", [0, 1])
def test_no_policy_does_without_any_guard(world: World, min_tasks: int) -> None:
    world.policy = replace(
        world.policy,
        judge=replace(world.policy.judge, min_tasks=min_tasks),
        evidence=replace(world.policy.evidence, max_guards=0, max_hold_out=0),
    )
    world.seed(hidden=())
    assert ended(world).state is EvolutionState.AWAITING_CONSENT


def test_the_policys_consent_opens_nothing_that_a_person_is_asked_for(world: World) -> None:
    """The last gate looks again, whatever state the evolution is in."""
    world.policy = replace(
        world.policy, evidence=replace(world.policy.evidence, max_guards=0, max_hold_out=0)
    )
    world.seed(hidden=())
    evolution = ended(world)
    candidate, _, verdict = judged(world)
    parts = world.parts
    forged = issue(
        parts.consent_key, candidate, verdict, Approval("policy:medium=auto", expiry(parts.now(), 60))
    )
    world.ledger.put(forged)
    with pytest.raises(PromotionRefused) as raised:
        promote(parts, evolution)
    assert raised.value.kind == RefusalKind.DOUBT
    approve(parts, evolution, "person:somebody")
    assert promote(parts, evolution).state is EvolutionState.PROBATION


# --- what was edited ran ------------------------------------------------------------------------

SPLIT = (
    "def high(points):\n    return points > 50\n"
    "def border(points):\n    return points > 50\n"
    "def answer(points):\n"
    "    if 49 < points < 51:\n"
    "        return 'pass' if border(points) else 'fail'\n"
    "    return 'pass' if high(points) else 'fail'\n"
)
AROUND = {
    "the edited function": (SPLIT, "def border(points):\n    return points > 50", "def border(points):\n    return points >= 50"),
    "its decorator": (SPLIT, "def border", "@lambda f: lambda points: True\ndef border"),
    "a constant that it alone looks up": (
        "LIMIT = 50\n" + SPLIT.replace("def border(points):\n    return points > 50", "def border(points):\n    return points > LIMIT"),
        "LIMIT = 50", "LIMIT = 49",
    ),
    "a lambda within what runs": (
        SPLIT.replace("border(points) else", "(lambda n: n > 50)(points) else"), "lambda n: n > 50", "lambda n: n >= 50",
    ),
    "a function that a load enters": (
        SPLIT + "FIRST = border(50)\n", "def border(points):\n    return points > 50", "def border(points):\n    return points >= 50",
    ),
    "a new function": (SPLIT, "border(points) else", "(border(points) or edge(points)) else"),
}  # fmt: skip


@pytest.mark.parametrize("what", AROUND)
def test_what_ran_in_no_guard_is_promoted_by_no_policy(world: World, what: str) -> None:
    """Four guards and a hold-out task pass before and after, and none of them came to the edit."""
    source, old, new = AROUND[what]
    assert old in source
    world.registry.edit({PATH: source})
    edit = source.replace(old, new)
    if what == "a new function":
        edit = edit.replace("def answer", "def edge(points):\n    return points == 50\ndef answer")
    proposing(world, edit)
    world.seed()
    evolution = ended(world)
    assert evolution.state is EvolutionState.AWAITING_CONSENT, evolution.reason
    assert "ran in no guard" in evolution.reason
    candidate, trials, verdict = judged(world)
    assert verdict.decision is Decision.PROMOTE
    if what != "a new function":  # which leaves an edit that guards do run beside it
        assert guarding(candidate, trials) == frozenset()
    assert recompute(verdict, candidate, trials, world.policy) == []


def test_trials_say_what_they_entered_and_a_verdict_is_bound_to_it(world: World) -> None:
    world.seed()
    assert ended(world).state is EvolutionState.PROBATION
    candidate, trials, verdict = judged(world)
    assert [part.name for part in candidate.edited] == [f"{PATH}:1:answer"]
    assert all(trial.reached == (f"{PATH}:1:answer",) for trial in trials)
    forged = [replace(trials[0], reached=()), *trials[1:]]
    assert "trials_sha256" in " ".join(recompute(verdict, candidate, forged, world.policy))


def test_records_that_do_not_say_what_was_entered_are_judged_as_they_were(world: World) -> None:
    world.seed()
    ended(world)
    candidate, trials, verdict = judged(world)
    old = replace(candidate, edited=())
    silent = [replace(trial, reached=()) for trial in trials]
    assert doubts(old, silent, world.policy) == ()
    again = judge(old, silent, world.policy)
    assert (again.decision, again.fixed) == (verdict.decision, verdict.fixed)
    assert doubts(candidate, silent, world.policy)  # and new ones that entered nothing are not


def test_a_hidden_task_that_failed_too_guards_nothing(world: World) -> None:
    """All that passes beside the evidence failed before: nobody can tell what the edit breaks."""
    for points in (46, 47, 48):
        world.live(world.task(points, "pass"))
    for points in (43, 44, 45):
        world.live(world.task(points, "pass", Share.HOLD_OUT), Share.HOLD_OUT)
    proposing(world, world.source().replace("> 50", "> 40"))
    evolution = ended(world)
    assert evolution.state is EvolutionState.AWAITING_CONSENT, evolution.reason
    candidate, trials, verdict = judged(world)
    assert verdict.decision is Decision.PROMOTE
    assert guarding(candidate, trials) == frozenset()
    assert len(guarding(candidate, trials, edition=2)) == 3, "as verdicts of before counted"
    assert recompute(verdict, candidate, trials, world.policy) == []
