"""Whole evolutions over faked ports: what is promoted, what is not, and what nobody may see."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agentos.domain import (
    COMPARED_SETS,
    Candidate,
    Consent,
    Decision,
    Evolution,
    EvolutionState,
    RefusalKind,
    SearchEffort,
    Share,
    Snapshot,
    TrialSet,
    Verdict,
    canonical,
)
from agentos.errors import Conflict, ErrorKind, Invalid, PromotionRefused, Unavailable, UserError
from agentos.evolver.cycle import (
    diagnose_and_curate,
    evolve,
    finish_promotion,
    propose_candidates,
    reproduce,
    trials_of,
    try_candidate,
)
from agentos.evolver.find.mining import flag, mine
from agentos.evolver.find.triage import triage
from agentos.evolver.policy import ConsentPolicy, Policy, SurfacePolicy
from agentos.evolver.promote.promotion import (
    approve,
    consent_by_policy,
    decline,
    promote,
    roll_back,
)
from agentos.evolver.promote.rebasing import settle_overtaken
from agentos.evolver.select.curate import TaskSets, choose_sets, shown_guards, visible_guards
from agentos.evolver.states import retry
from agentos.evolver.verdict.judge import recompute
from agentos.ports import Brief, Proposal
from agentos.testing import FakeRegistry, ScriptedProposer
from tests.refusals import raises

if TYPE_CHECKING:
    from conftest import World

PATH = "skill/calc/tools/grade.py"
FAULTY = "def answer(points):\n    if points > 50:\n        return 'pass'\n    return 'fail'\n"
RIGHT = FAULTY.replace("> 50", ">= 50")
TEMPTING = FAULTY.replace("> 50", "> 40")
USELESS = FAULTY.replace("> 50", "> 51")
ASK = Policy(consent=ConsentPolicy(medium="ask"))


def propose(*sources: str) -> ScriptedProposer:
    return ScriptedProposer(
        [Proposal("a cause", "an edit", "compare", {PATH: s}, "why", (), ()) for s in sources]
    )


def test_a_failure_is_mined_repaired_measured_and_promoted(world: World) -> None:
    world.seed()
    ended = world.evolve(world.open())
    assert ended.state is EvolutionState.PROBATION
    assert world.source() == RIGHT
    (verdict,) = world.ledger.find(Verdict)
    assert verdict.decision is Decision.PROMOTE
    assert len(verdict.fixed) == 2
    assert ended.promoted is not None
    assert ended.promoted.tree == verdict.candidate_tree
    (consent,) = world.ledger.find(Consent)
    assert consent.principal == "policy:medium=auto"


def test_an_edit_that_is_proposed_again_is_tried_once(world: World) -> None:
    world.proposer = propose(USELESS, USELESS, RIGHT)
    world.seed()
    assert world.evolve(world.open()).state is EvolutionState.PROBATION
    assert [item.edit.files[PATH] for item in world.ledger.find(Candidate)] == [USELESS, RIGHT]


def test_a_proposer_that_the_machine_gives_no_thread_is_asked_again(world: World) -> None:
    class Starved(ScriptedProposer):
        def propose(self, brief: Brief) -> Iterator[Proposal]:
            raise RuntimeError("can't start new thread")
            yield

    world.proposer = Starved([])
    world.seed()
    with raises(Unavailable, ErrorKind.FULL, names=["ulimit -u"]):
        world.evolve(world.open())


def test_mining_twice_counts_no_run_twice(world: World) -> None:
    world.seed()
    assert mine(world.parts) == 2
    assert mine(world.parts) == 0


def test_one_failure_is_not_yet_evidence_but_a_flag_is(world: World) -> None:
    run = world.live(world.task(50, "pass"))
    mine(world.parts)
    assert triage(world.parts) == []
    flag(world.parts, run)
    assert len(triage(world.parts)) == 1


def test_a_passing_run_and_a_hidden_run_cannot_be_flagged(world: World) -> None:
    with raises(UserError, names=["did not fail"]):
        flag(world.parts, world.live(world.task(90, "pass")))
    with raises(UserError, ErrorKind.HIDDEN):
        flag(world.parts, world.live(world.task(50, "pass", Share.HOLD_OUT), Share.HOLD_OUT))


def test_old_failures_weigh_less(world: World) -> None:
    world.seed()
    mine(world.parts)
    world.later = timedelta(days=400)
    assert triage(world.parts) == []


def test_the_tempting_repair_is_rejected_and_the_right_one_taken(world: World) -> None:
    world.proposer = propose(USELESS, TEMPTING, RIGHT)
    world.seed()
    ended = world.evolve(world.open())
    decisions = [verdict.decision for verdict in world.ledger.find(Verdict)]
    assert decisions == [Decision.REJECT, Decision.REJECT, Decision.PROMOTE]
    assert ended.state is EvolutionState.PROBATION
    assert world.source() == RIGHT


def test_edits_beside_a_proposal_are_candidates_too_up_to_the_number_of_the_policy(world: World) -> None:
    world.policy = replace(world.policy, propose=replace(world.policy.propose, max_candidates=2))
    useless, right, third = propose(USELESS, RIGHT, TEMPTING).proposals
    world.proposer = ScriptedProposer([replace(useless, beside=(right, third))])
    world.seed()
    evolution = world.evolve(world.open())
    candidates = world.ledger.find(Candidate, evolution_id=evolution.id)
    assert [item.edit.files[PATH] for item in candidates] == [USELESS, RIGHT], "two in all, by the policy"
    assert candidates[1].id == evolution.candidate_id


def test_only_the_hidden_hold_out_catches_it_and_nothing_moves(world: World) -> None:
    world.proposer = propose(FAULTY.replace("> 50", "> 47"))
    for points in (50, 50.0):
        world.live(world.task(points, "pass"))  # type: ignore[arg-type]
    world.live(world.task(90, "pass"))
    world.live(world.task(48, "fail", Share.HOLD_OUT), Share.HOLD_OUT)
    before = world.registry.stable()
    ended = world.evolve(world.open())
    assert ended.state is EvolutionState.REJECTED
    assert world.registry.stable() == before
    (verdict,) = world.ledger.find(Verdict)
    assert any("hold-out" in reason for reason in verdict.reasons)


def test_a_proposer_sees_no_hold_out_task_and_no_check_of_a_guard(world: World) -> None:
    for points in (60.25, 61.25, 62.25, 63.25, 64.25):
        world.live(world.task(points, "pass"))  # type: ignore[arg-type]
    world.seed(hidden=((45045, "pass"), (-77077, "fail")))
    world.evolve(world.open())
    (brief,) = world.proposer.briefs
    seen = repr(brief)
    assert "45045" not in seen
    assert "77077" not in seen
    assert [case.task_id for case in brief.cases] == list(world.evidence().task_ids)
    assert 0 < len(brief.working_calls) < 9, "a share of the guards stays unseen"
    assert all(case.checks == () for case, _ in brief.working_calls)


def test_no_old_answer_is_to_be_kept_of_work_that_is_evidence_too(world: World) -> None:
    """A correction calls a part of a wrong answer right: a guard with a check of that part, on the same work."""
    world.seed()
    first = world.task(50, "fail")
    guards = [replace(first, id=f"task-part-{number}", goal=f"part {number}") for number in range(8)]
    other = world.task(70, "pass")
    for task in (*guards, other):
        world.ledger.add_task(task, Share.OPEN)
        world.live(task)
    sets = TaskSets(tuple(task.id for task in world.failing), tuple(task.id for task in (*guards, other)), ())
    assert shown_guards(world.parts, sets) != [other]
    kept = visible_guards(world.parts, sets, PATH, "grade")
    assert {case.call.args["points"] for case, _ in kept} <= {70}


def test_the_same_call_under_many_goals_is_one_guard(world: World) -> None:
    """Whoever wants an edit promoted files one harmless call again and again: that is no more to break."""
    world.failing = [world.task(50, "pass"), world.task(48, "pass")]
    once = world.task(90, "pass")
    twins = [replace(once, id=f"task-twin-{number}", goal=f"grade it, {number}") for number in range(5)]
    hidden = replace(once, id="task-twin-hidden", goal="grade it unseen")
    gone = replace(world.failing[0], id="task-same-as-evidence", goal="grade fifty unseen")
    for task in twins:
        world.ledger.add_task(task, Share.OPEN)
    for task in (hidden, gone):
        world.ledger.add_task(task, Share.HOLD_OUT)
    for task in (once, *twins, *world.failing):
        world.live(task)
    for task in (hidden, gone):
        world.live(task, Share.HOLD_OUT)
    world.proposer = propose(FAULTY.replace("> 50", "> 47"))
    opened = world.open()
    sets = choose_sets(world.parts, world.evidence(), "skill/calc")
    assert (len(sets.guards), sets.hold_out) == (1, ()), "what is shown elsewhere is not hidden"
    waiting = world.evolve(opened)
    assert waiting.state is EvolutionState.AWAITING_CONSENT
    assert "1 pass with it and ran what it edits, and with fewer than 3 (min_tasks)" in waiting.reason


def test_one_hidden_failure_opens_nothing(world: World) -> None:
    world.live(world.task(50, "pass", Share.HOLD_OUT), Share.HOLD_OUT)
    assert mine(world.parts) == 0
    assert triage(world.parts) == []


def test_the_three_sets_are_disjoint(world: World) -> None:
    world.seed()
    world.evolve(world.open())
    sets: dict[TrialSet, set[str]] = {}
    for trial in world.trials():
        sets.setdefault(trial.set, set()).add(world.ledger.task(trial.task_id).key)
    assert set(sets) == set(COMPARED_SETS)
    assert not sets[TrialSet.EVIDENCE] & sets[TrialSet.GUARD]
    assert not sets[TrialSet.HOLD_OUT] & (sets[TrialSet.GUARD] | sets[TrialSet.EVIDENCE])


def test_what_passes_now_is_not_reproducible(world: World) -> None:
    world.seed()
    evolution = world.open()
    world.registry.edit({PATH: RIGHT})
    assert world.evolve(evolution).state is EvolutionState.NOT_REPRODUCIBLE
    assert world.proposer.briefs == []


def test_an_evolution_that_waited_is_measured_on_what_is_stable_now(world: World) -> None:
    world.seed()
    evolution = world.open()
    world.registry.edit({"skill/calc/SKILL.md": "another promotion"})
    ended = world.evolve(evolution)
    assert ended.state is EvolutionState.PROBATION
    assert ended.base != evolution.base


def test_no_proposal_means_cannot_fix(world: World) -> None:
    world.proposer = propose()
    world.seed()
    assert world.evolve(world.open()).state is EvolutionState.CANNOT_FIX


def test_a_search_that_ran_out_of_time_does_not_claim_to_have_found_nothing_at_all(world: World) -> None:
    class Slow(ScriptedProposer):
        def propose(self, brief: Brief) -> Iterator[Proposal]:
            world.later += timedelta(seconds=brief.budget_s)
            yield from super().propose(brief)

    world.seed()
    world.proposer = propose()
    at_leisure = world.evolve(world.open())
    assert at_leisure.reason.endswith("makes its failing tasks pass")
    world.proposer = Slow([])
    hurried = world.evolve(retry(world.parts, at_leisure))
    assert hurried.state is EvolutionState.CANNOT_FIX
    assert hurried.reason.endswith("in the 45 s that it may take ([propose] budget_s in policy.toml)")


def test_cannot_fix_names_all_that_was_searched(world: World) -> None:
    searched = ("tool/x/tool.py", "tool/x/_rates.py")

    class InVain(ScriptedProposer):
        def propose(self, brief: Brief) -> Generator[Proposal, None, SearchEffort]:  # type: ignore[override]
            yield from ()
            return SearchEffort(3, 3, 0.1, exhausted=True, files=searched)

    world.seed()
    world.proposer = InVain([])
    ended = world.evolve(world.open())
    assert ended.state is EvolutionState.CANNOT_FIX
    assert [asked.search.files for asked in ended.asked if asked.search] == [searched]
    assert all(path in ended.reason for path in searched)


def test_a_screened_proposal_is_kept_but_never_run(world: World) -> None:
    world.proposer = propose("import socket\n" + RIGHT)
    world.seed()
    assert world.evolve(world.open()).state is EvolutionState.CANNOT_FIX
    (candidate,) = world.ledger.find(Candidate)
    assert "import socket" in candidate.screened
    assert {trial.candidate_id for trial in world.trials()} == {""}


def test_a_surface_that_forbids_it_stops_any_edit(world: World) -> None:
    world.policy = Policy(surface=SurfacePolicy(allow=("tool/*/*.py",)))
    world.seed()
    assert world.evolve(world.open()).state is EvolutionState.CANNOT_FIX
    assert world.source() == FAULTY


def test_a_pinned_resource_is_not_touched(world: World, resource: object) -> None:
    world.registry.pinned.add(resource)  # type: ignore[arg-type]
    world.seed()
    ended = world.evolve(world.open())
    assert ended.state is EvolutionState.CANNOT_FIX
    assert "pinned" in ended.reason


def test_a_trial_that_the_machinery_loses_is_repeated_and_not_counted(world: World) -> None:
    world.seed()
    evolution = world.open()
    world.lost = 2
    assert world.evolve(evolution).state is EvolutionState.PROBATION


def test_machinery_that_stays_away_decides_nothing(world: World) -> None:
    world.seed()
    evolution = world.open()
    world.lost = 1000
    with pytest.raises(Unavailable):
        evolve(world.parts, evolution.id, world.durable)
    assert world.ledger.find(Verdict) == []
    world.lost = 0
    assert world.evolve(evolution).state is EvolutionState.PROBATION


def test_an_evolution_cut_anywhere_goes_on_without_a_second_effect(world: World) -> None:
    """Die after each durable step in turn, start again from the beginning: one candidate, one commit."""

    class Cut(Exception):
        pass

    world.proposer = propose(TEMPTING, RIGHT)
    world.seed()
    evolution = world.open()
    for position in range(20):

        class Dying:
            def __init__(self, left: int) -> None:
                self.left = left

            def step(self, name: str, work: object) -> object:
                if self.left == 0:
                    raise Cut
                self.left -= 1
                return work()  # type: ignore[operator]

        try:
            evolve(world.parts, evolution.id, Dying(position))  # type: ignore[arg-type]
            break
        except Cut:
            continue
    assert world.ledger.get(Evolution, evolution.id).state is EvolutionState.PROBATION
    assert len(world.ledger.find(Candidate)) == 2
    assert len(world.ledger.find(Verdict)) == 2
    trials = world.trials()
    assert len({trial.id for trial in trials}) == len(trials)
    assert world.source() == RIGHT


def test_a_verdict_is_computed_again_from_what_is_stored(world: World) -> None:
    world.seed()
    world.evolve(world.open())
    (candidate,), (verdict,) = world.ledger.find(Candidate), world.ledger.find(Verdict)
    assert recompute(verdict, candidate, trials_of(world.parts, candidate), world.policy) == []
    assert world.blobs.get(verdict.policy_sha256) == canonical(world.policy)


def test_what_an_older_version_judged_is_not_judged_again(world: World) -> None:
    """Its workflow begins anew where steps have changed since; a verdict that differed would be refused."""
    world.seed()
    promoted = world.evolve(world.open())
    (before,) = world.ledger.find(Verdict)
    world.policy = replace(world.policy, judge=replace(world.policy.judge, min_tasks=100))
    assert (
        try_candidate(world.parts, str(promoted.candidate_id), TaskSets((), (), ())) == before.decision.value
    )
    assert list(world.ledger.find(Verdict)) == [before]


def test_a_tier_that_asks_waits_for_a_person(world: World) -> None:
    world.policy = ASK
    world.seed()
    waiting = world.evolve(world.open())
    assert waiting.state is EvolutionState.AWAITING_CONSENT
    assert world.source() == FAULTY
    with pytest.raises(PromotionRefused) as raised:
        promote(world.parts, waiting)
    assert raised.value.kind == RefusalKind.NO_CONSENT
    approve(world.parts, waiting, "person:ada")
    finish_promotion(world.parts, waiting.id, world.durable)
    assert world.source() == RIGHT


def test_an_edit_that_newly_reads_the_clock_waits_for_a_person(world: World) -> None:
    """Right in every trial; when it is right, nobody can tell. The policy's own consent is worth nothing."""
    clock = "import time\n" + RIGHT.replace("'pass'", "'pass' if time.time() > 1.0 else 'late'")
    world.proposer = propose(clock)
    world.seed()
    waiting = world.evolve(world.open())
    assert waiting.state is EvolutionState.AWAITING_CONSENT
    assert "newly reads the clock (tell)" in waiting.reason
    candidate = world.ledger.get(Candidate, str(waiting.candidate_id))
    consent_by_policy(world.parts, candidate)
    with pytest.raises(PromotionRefused) as raised:
        promote(world.parts, waiting)
    assert raised.value.kind == RefusalKind.SCREEN
    assert world.source() == FAULTY
    approve(world.parts, waiting, "person:ada")
    finish_promotion(world.parts, waiting.id, world.durable)
    assert world.source() == clock


def test_a_consent_of_another_home_promotes_nothing(world: World) -> None:
    world.policy = ASK
    world.seed()
    waiting = world.evolve(world.open())
    consent = approve(world.parts, waiting, "person:ada")
    world.ledger.put(replace(consent, token="0" * 64))
    with pytest.raises(PromotionRefused) as raised:
        promote(world.parts, waiting)
    assert raised.value.kind == RefusalKind.FORGED
    assert world.source() == FAULTY


def test_approving_what_went_stale_promotes_nothing(world: World) -> None:
    world.policy = ASK
    world.seed()
    waiting = world.evolve(world.open())
    world.registry.edit({"skill/calc/SKILL.md": "y"})
    approve(world.parts, waiting, "person:ada")
    assert finish_promotion(world.parts, waiting.id, world.durable) is EvolutionState.STALE
    assert world.source() == FAULTY


def test_a_registry_that_moved_makes_it_stale_and_it_is_measured_again(world: World) -> None:
    world.policy = ASK
    world.seed()
    waiting = world.evolve(world.open())
    approve(world.parts, waiting, "person:ada")
    world.registry.edit({"skill/calc/SKILL.md": "y"})
    finish_promotion(world.parts, waiting.id, world.durable)
    assert world.ledger.get(Evolution, waiting.id).state is EvolutionState.STALE
    assert world.source() == FAULTY
    fresh = world.ledger.find(Evolution)[-1]
    assert fresh.evidence_id == waiting.evidence_id
    assert fresh.base == world.registry.stable()


def test_what_was_tried_in_other_boxes_than_runs_get_is_measured_again(world: World) -> None:
    world.policy = ASK
    world.seed()
    waiting = world.evolve(world.open())
    assert {trial.image for trial in world.trials()} == {"one"}
    approve(world.parts, waiting, "person:ada")
    world.image = "another"  # an upgrade of Python, of a library, of the program
    finish_promotion(world.parts, waiting.id, world.durable)
    ended = world.ledger.get(Evolution, waiting.id)
    assert (ended.state, world.source()) == (EvolutionState.STALE, FAULTY)
    assert "not made of what it was" in ended.reason
    again = world.evolve(world.ledger.find(Evolution)[-1])
    approve(world.parts, again, "person:ada")
    finish_promotion(world.parts, again.id, world.durable)
    assert world.source() == RIGHT


def test_what_waits_for_consent_goes_stale_by_itself(world: World) -> None:
    world.policy = ASK
    world.seed()
    waiting = world.evolve(world.open())
    assert not settle_overtaken(world.parts, waiting)
    world.registry.edit({"skill/calc/SKILL.md": "y"})
    assert settle_overtaken(world.parts, waiting)
    ended = world.ledger.get(Evolution, waiting.id)
    assert ended.state is EvolutionState.STALE
    assert not settle_overtaken(world.parts, ended)
    assert world.ledger.find(Evolution)[-1].base == world.registry.stable()


def test_a_declined_edit_stays_declined_until_someone_reconsiders(world: World) -> None:
    world.policy = ASK
    world.seed()
    waiting = world.evolve(world.open())
    ended = decline(world.parts, waiting, "person:ada", "not now")
    assert ended.is_closed
    for points in (50, 50.0):
        world.live(world.task(points, "pass"))  # type: ignore[arg-type]
    mine(world.parts)
    assert triage(world.parts) == []
    fresh = retry(world.parts, ended)
    assert world.evolve(fresh).state is EvolutionState.AWAITING_CONSENT
    with raises(Conflict, ErrorKind.AT_WORK, names=[fresh.id]):
        retry(world.parts, ended)


def test_a_rolled_back_edit_is_not_proposed_again(world: World) -> None:
    world.seed()
    standing = world.evolve(world.open())
    ended = roll_back(world.parts, standing, "it was wrong")
    assert world.source() == FAULTY
    assert ended.state is EvolutionState.ROLLED_BACK
    again = world.evolve(retry(world.parts, ended))
    assert again.state is EvolutionState.CANNOT_FIX
    assert "rolled back" in world.ledger.find(Candidate)[-1].screened
    with raises(PromotionRefused, RefusalKind.OVER):
        roll_back(world.parts, ended, "twice")


def test_the_circuit_breaks_after_three_attempts(world: World) -> None:
    world.proposer = propose(TEMPTING)
    world.seed()
    evolution = world.open()
    for attempt in range(3):
        assert world.evolve(evolution).state is EvolutionState.REJECTED
        mine(world.parts)
        assert triage(world.parts) == [], "the same evidence is not tried again"
        task = replace(world.failing[0], id=f"task-new-{attempt}", goal=f"new work {attempt}")
        world.ledger.add_task(task, Share.OPEN)
        world.live(task)
        mine(world.parts)
        opened = triage(world.parts)
        if attempt < 2:
            (evolution,) = opened
    assert opened == []
    assert world.ledger.find(Evolution)[-1].state is EvolutionState.CIRCUIT_BROKEN
    assert triage(world.parts) == []


def test_attempts_before_a_success_break_no_circuit(world: World) -> None:
    world.proposer = propose(TEMPTING)
    world.seed()
    ended = world.evolve(world.open())
    mended = replace(ended, id="evo-mended", state=EvolutionState.PROMOTED)
    world.ledger.put(replace(ended, id="evo-again"), mended, replace(ended, id="evo-since"))
    world.live(world.task(49, "pass"))
    mine(world.parts)
    (opened,) = triage(world.parts)
    assert opened.state is EvolutionState.MINED


def test_two_failures_of_one_file_are_not_worked_on_at_once(world: World) -> None:
    world.seed()
    world.open()
    assert triage(world.parts) == []


def test_a_hidden_task_that_was_repaired_is_no_guard_of_the_next_evolution(world: World) -> None:
    world.seed(hidden=((50.0, "pass"), (45, "fail")))  # type: ignore[arg-type]
    ended = world.evolve(world.open())
    assert ended.state is EvolutionState.PROBATION
    (verdict,) = world.ledger.find(Verdict)
    hidden = [run.task_id for _, run in world.ledger.runs_after(0, 99) if run.share is Share.HOLD_OUT]
    assert set(hidden) & set(verdict.fixed), "it repaired a hidden task too"
    evidence = replace(world.evidence(), task_ids=())
    sets = choose_sets(world.parts, evidence, "skill/calc")
    assert {task.id for task in world.failing} & set(sets.guards) == {world.failing[0].id}, (
        "the twin adds nothing"
    )
    assert not set(hidden) & set(sets.guards)
    assert set(hidden) == set(sets.hold_out)


def test_two_processes_open_one_evolution_for_one_failure(world: World) -> None:
    world.seed()
    mine(world.parts)

    class Slow:
        """Reads its position, and only then the other process opens the evolution."""

        def read(self, name: str) -> int:
            position = world.ledger.read(name)
            triage(world.parts)
            return position

        def advance(self, name: str, to: int, records: Sequence[object], *, after: int | None = None) -> None:
            world.ledger.advance(name, to, records, after=after)

    late = replace(world.parts, cursor=Slow())
    assert triage(late) == []
    assert len(world.ledger.find(Evolution)) == 1


def test_a_search_that_is_done_again_keeps_what_it_had_stored(world: World) -> None:
    world.seed()
    evolution = world.open()
    world.proposer = propose(TEMPTING)
    failing = reproduce(world.parts, evolution.id)
    sets = TaskSets(*map(tuple, diagnose_and_curate(world.parts, evolution.id, failing)))
    first = propose_candidates(world.parts, evolution.id, sets)
    world.proposer = propose(RIGHT, USELESS)  # after a kill, the same time finds other edits
    again = propose_candidates(world.parts, evolution.id, sets)
    assert again[0] == first[0]
    assert len(again) == 2
    kept = world.ledger.get(Candidate, first[0])
    assert kept.edit.files[PATH] == TEMPTING


def test_candidates_that_change_nothing_end_without_improvement(world: World) -> None:
    world.proposer = propose(USELESS)
    world.seed()
    ended = world.evolve(world.open())
    assert ended.state is EvolutionState.NO_IMPROVEMENT
    assert ended.reason == "the only candidate did not change how any task ends"


@pytest.mark.parametrize("path", [PATH, ""])
def test_what_came_to_nothing_is_tried_again_once_its_own_resource_has_changed(
    world: World, path: str
) -> None:
    """Where no file is at fault, because a new one is wanted, this is not any change of the registry."""
    world.proposer = propose(USELESS)
    world.seed()
    ended = world.evolve(world.open())
    assert ended.diagnosis is not None
    world.ledger.put(replace(ended, diagnosis=replace(ended.diagnosis, path=path)))
    world.registry.edit({"skill/other/SKILL.md": "x"})
    assert triage(world.parts) == []
    world.registry.edit({PATH: USELESS})
    assert len(triage(world.parts)) == 1


class Picky(FakeRegistry):
    """Takes no edit that says so."""

    def add_candidate(self, candidate_id: str, base: Snapshot, files: Mapping[str, str]) -> Snapshot:
        if any("never" in text for text in files.values()):
            raise Invalid(candidate_id, ["An evolution may not do this"])
        return super().add_candidate(candidate_id, base, files)


def test_an_edit_that_the_registry_would_not_promote_is_screened_and_the_next_is_tried(world: World) -> None:
    world.registry = Picky({PATH: FAULTY, "skill/calc/SKILL.md": "x"})
    world.proposer = propose(RIGHT + "# never\n", RIGHT)
    world.seed()
    ended = world.evolve(world.open())
    assert ended.state is EvolutionState.PROBATION
    assert [item.screened for item in world.ledger.find(Candidate)] == ["An evolution may not do this", ""]


def test_an_edit_that_a_kill_left_without_a_record_is_in_no_other_edits_way(world: World) -> None:
    """A search that is done again may find another edit in the same time."""
    world.seed()
    opened = world.open()
    left = f"cand-{opened.id.removeprefix('evo-')}-1"
    world.registry.add_candidate(left, world.registry.stable(), {PATH: USELESS})
    ended = world.evolve(opened)
    assert ended.state is EvolutionState.PROBATION
    (candidate,) = world.ledger.find(Candidate)
    assert candidate.id.startswith(f"{left}-")
    assert world.source() == RIGHT


def test_a_new_tool_does_not_take_the_place_of_one_that_is_there(world: World) -> None:
    """A task that calls ``grade`` would get a tool of its own before the skill's, pinned or not."""
    source = (
        'TOOL = {"name": "grade"}\n\n\nclass Input:\n    points: int\n\n\nclass Output:\n    grade: str\n\n\n'
        "def run(input):\n    return input\n"
    )
    edit = Proposal("a cause", "an edit", "compare", {"tool/grade/tool.py": source}, "why", (), ())
    world.proposer = ScriptedProposer([edit])
    world.seed()
    ended = world.evolve(world.open())
    (candidate,) = world.ledger.find(Candidate)
    assert candidate.screened == f"tool/grade/tool.py: there is a tool grade already ({PATH})"
    assert ended.promoted is None


def test_what_the_machinery_cut_short_is_taken_up_whole_as_soon_as_it_fails_again(world: World) -> None:
    """Nothing was learnt of the failure: one new run is enough, and the evidence is all that was seen."""
    world.seed()
    cut = world.parts.move(world.open(), EvolutionState.CANCELLED, "the machinery failed", end=True)
    assert triage(world.parts) == []
    assert triage(world.parts) == [], "it is not opened again and again"
    world.live(world.failing[0])
    mine(world.parts)
    (again,) = triage(world.parts)
    assert again.fingerprint_id == cut.fingerprint_id
    assert len(world.evidence().task_ids) == 2
    assert world.evolve(again).state is EvolutionState.PROBATION
