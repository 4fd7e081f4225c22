"""Evolutions of tasks that pass at one time and fail at another: who is promoted, held, rejected, and after how many trials."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from agentos.domain import (
    Arm,
    Candidate,
    Cost,
    Decision,
    Evolution,
    EvolutionState,
    Fault,
    Outcome,
    RefusalKind,
    Result,
    Snapshot,
    Step,
    SupportKind,
    Task,
    TrialSet,
    Verdict,
)
from agentos.errors import ModelAway
from agentos.evolver.cycle import trials_of
from agentos.evolver.policy import ASKED, Judge, Policy, ReplayPolicy
from agentos.evolver.states import retry
from agentos.evolver.verdict.doubts import doubts
from agentos.evolver.verdict.judge import judge, recompute
from agentos.evolver.verdict.paired_tests import SteadySummary
from agentos.evolver.verdict.pairing import CHOOSING, FIRST, rule_on
from agentos.ports import Attempt, Proposal
from agentos.testing import FakeExecutor, ScriptedProposer, attempt
from tests.evolver.conftest import WITHOUT_FRESH
from tests.refusals import raises

if TYPE_CHECKING:
    from conftest import World

PATH = "skill/calc/tools/grade.py"
FAULTY = "def answer(points):\n    if points > 50:\n        return 'pass'\n    return 'fail'\n"
RIGHT = FAULTY.replace("> 50", ">= 50")
USELESS = FAULTY.replace("> 50", "> 51")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LENIENT = Policy(judge=Judge(margin=0.2, fresh_tasks=0))  # few pairs for a guard
COST = Cost(wall_s=1.0, tokens=100, usd=0.001, calls=1, live_calls=1)
# Of the task with these points, under this source: the chance to pass.
Chance = Callable[[int, str], float]


def thinks(run_id: str) -> Step:
    return Step(run_id, 0, "model", {"model": ""}, {"message": {"content": "hm"}}, None, NOW, 1.0)


def certain(points: int, source: str) -> float:
    """The faulty tool fails 50 points always; the right one nothing."""
    return float(points != 50 or source == RIGHT)


@dataclass
class Model:
    """Executes by throwing dice, for tasks that it says vary; ``cost`` is by source."""

    world: World
    chance: Chance = certain
    seed: int = 0
    varies: Callable[[int], bool] = lambda points: True
    cost: Callable[[str], Cost] = lambda source: COST
    dies_after: int = 10**9
    said: Callable[[int, str], Outcome | None] = lambda points, source: None
    ids: list[str] = field(default_factory=list)

    def install(self) -> Model:
        """Take the executor's place, and tell of the models that the live runs asked."""
        self._dice = random.Random(self.seed)
        plain = self.world._script

        def script(task: Task, snapshot: Snapshot) -> Attempt:
            assert task.call is not None
            points = int(task.call.args["points"])
            if not self.varies(points):
                return plain(task, snapshot)
            source = self.world.registry.files(snapshot, PATH)[PATH].decode()
            done = attempt(passed=self._dice.random() < self.chance(points, source))
            outcome = self.said(points, source) or replace(done.outcome, cost=self.cost(source))
            reached = self.world.labels(snapshot)
            return replace(done, outcome=outcome, steps=(thinks("trial"),), reached=reached)

        fake = FakeExecutor(script)
        execute = fake.execute

        def counted(task: Task, snapshot: Snapshot, run_id: str, *rest: object, **more: object) -> Attempt:
            if len(self.ids) == self.dies_after:
                raise KeyboardInterrupt
            self.ids.append(run_id)
            return execute(task, snapshot, run_id, *rest, **more)  # type: ignore[arg-type] # passed on

        fake.execute = counted  # type: ignore[method-assign] # the fake's
        self.world.executor = fake
        for _, run in self.world.ledger.runs_after(0, 100):
            call = self.world.ledger.task(run.task_id).call
            assert call is not None
            if self.varies(int(call.args["points"])):
                self.world.ledger.insert_step(thinks(run.id))
        return self


def proposing(*sources: str) -> ScriptedProposer:
    return ScriptedProposer(
        [Proposal("a cause", "an edit", "compare", {PATH: one}, "why", (), ()) for one in sources]
    )


def ended(world: World) -> tuple[Evolution, list[Verdict]]:
    evolution = world.evolve(world.open())
    return evolution, list(world.ledger.find(Verdict))


def stands(world: World) -> None:
    """Each verdict is computed again from what is stored, whatever was tried after it."""
    for verdict in world.ledger.find(Verdict):
        candidate = world.ledger.get(Candidate, verdict.candidate_id)
        assert recompute(verdict, candidate, trials_of(world.parts, candidate), world.policy) == []


def pairs(world: World) -> Counter[TrialSet]:
    return Counter(trial.set for trial in world.trials() if trial.arm is Arm.CANDIDATE)


def test_a_clear_repair_is_promoted_after_few_fresh_pairs(world: World) -> None:
    world.policy = LENIENT
    world.seed()
    Model(world).install()
    evolution, (verdict,) = ended(world)
    assert evolution.state is EvolutionState.PROBATION, evolution.reason
    assert world.source() == RIGHT
    assert set(verdict.fixed) == {task.id for task in world.failing}
    assert (verdict.broken, verdict.flaky) == ((), ())
    assert verdict.kinds[0] == SupportKind.GAINED
    assert "8 better and 0 worse of 8 pairs" in verdict.reasons[0]
    assert pairs(world) == {TrialSet.EVIDENCE: 8, TrialSet.GUARD: 24, TrialSet.HOLD_OUT: 21}
    stands(world)


def test_no_pair_holds_a_trial_that_chose_a_task_or_a_recorded_answer(world: World) -> None:
    world.policy = LENIENT
    world.seed()
    Model(world).install()
    ended(world)
    assert all(plan is not None and plan.mode == "record" for plan in world.executor.plans)
    assert all(plan.recording.run_ids == () for plan in world.executor.plans if plan and plan.recording)
    own = [trial for trial in world.trials() if trial.arm is Arm.CANDIDATE]
    assert min(trial.repeat for trial in own) == FIRST
    base = {(trial.task_id, trial.repeat) for trial in world.trials() if trial.arm is Arm.BASE}
    assert {(trial.task_id, trial.repeat) for trial in own} <= base
    assert {(trial.task_id, repeat) for trial in own for repeat in range(CHOOSING, CHOOSING + 4)} <= base
    assert not any(trial.recording for trial in world.trials())


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
@pytest.mark.slow
def test_edits_that_change_nothing_are_not_promoted(world: World, rate: float) -> None:
    """The mined runs failed, all of them: whoever counted them would see an improvement."""
    states: Counter[EvolutionState] = Counter()
    for seed in range(2):  # how often it errs is measured by benchmarks/bench_judge.py
        world = type(world)(proposer=proposing(USELESS, RIGHT), policy=LENIENT)
        world.seed()
        Model(world, lambda points, source: rate if points == 50 else 1.0, seed=seed).install()
        evolution, _ = ended(world)
        states[evolution.state] += 1
        stands(world)
    assert not states[EvolutionState.PROBATION], states
    assert set(states) <= {
        EvolutionState.NO_IMPROVEMENT,
        EvolutionState.REJECTED,
        EvolutionState.HELD,
        EvolutionState.NOT_REPRODUCIBLE,
    }


def test_a_guard_that_breaks_rejects_and_the_hold_out_is_not_paid_for(world: World) -> None:
    world.seed()
    Model(
        world, lambda points, source: certain(points, source) * (points != 60 or source == FAULTY)
    ).install()
    evolution, (verdict,) = ended(world)
    assert evolution.state is EvolutionState.REJECTED
    assert verdict.decision is Decision.REJECT
    assert len(verdict.broken) == 1
    assert verdict.broken[0].startswith("task-60")
    assert TrialSet.HOLD_OUT not in pairs(world)
    stands(world)


def test_a_broken_hold_out_task_rejects_unnamed(world: World) -> None:
    world.policy = LENIENT
    world.seed()
    Model(
        world, lambda points, source: certain(points, source) * (points != 45 or source == FAULTY)
    ).install()
    evolution, (verdict,) = ended(world)
    assert verdict.decision is Decision.REJECT
    assert "task-45" not in " ".join((*verdict.reasons, evolution.reason))
    stands(world)


def test_what_is_undecided_is_held_with_the_number_of_further_pairs(world: World) -> None:
    world.policy = Policy(judge=Judge(max_pairs=6))
    world.seed()
    Model(world).install()
    evolution, (verdict,) = ended(world)
    assert evolution.state is EvolutionState.HELD
    assert verdict.decision is Decision.HOLD
    assert evolution.reason == verdict.reasons[0]
    assert verdict.kinds == (RefusalKind.UNDECIDED,)
    assert "6 better and 0 worse of 6 pairs" in evolution.reason
    assert "2 further pairs" in evolution.reason
    assert "max_pairs 6" in evolution.reason
    assert pairs(world) == {TrialSet.EVIDENCE: 6}
    stands(world)


def test_money_bounds_the_trials(world: World) -> None:
    world.policy = Policy(judge=Judge(max_usd=0.0129))
    world.seed()
    Model(world).install()
    evolution, _ = ended(world)
    assert evolution.state is EvolutionState.HELD
    assert "(max_usd)" in evolution.reason
    assert pairs(world) == {TrialSet.EVIDENCE: 4}  # 8 trials to choose, 8 in pairs, a tenth of a cent each
    stands(world)


def test_a_candidate_that_costs_much_more_is_rejected(world: World) -> None:
    world.policy = LENIENT
    world.seed()
    dear = replace(COST, tokens=10_000)
    Model(world, cost=lambda source: dear if source == RIGHT else COST).install()
    _, (verdict,) = ended(world)
    assert verdict.decision is Decision.REJECT
    assert verdict.kinds[0] == RefusalKind.COSTLY
    assert "2 times the base's tokens" in verdict.reasons[0]
    stands(world)


@pytest.mark.parametrize("after", [3, 11, 30, 61])
def test_a_crash_between_rounds_loses_no_trial_and_changes_no_verdict(world: World, after: int) -> None:
    world.policy = LENIENT
    world.seed()
    model = Model(world, dies_after=after).install()
    evolution = world.open()
    with pytest.raises(KeyboardInterrupt):
        world.evolve(evolution)
    model.dies_after = 10**9
    assert world.evolve(evolution).state is EvolutionState.PROBATION
    assert len(set(model.ids)) == len(model.ids) == len(world.trials())
    assert pairs(world) == {TrialSet.EVIDENCE: 8, TrialSet.GUARD: 24, TrialSet.HOLD_OUT: 21}
    stands(world)


def test_candidates_of_one_evidence_are_counted_for_each_set_and_across_evolutions(world: World) -> None:
    world.policy = LENIENT
    world.proposer = proposing(USELESS, FAULTY.replace("> 50", "> 52"))
    world.seed()
    Model(world).install()
    evolution, verdicts = ended(world)
    assert evolution.state is EvolutionState.NO_IMPROVEMENT
    assert [(verdict.decision, verdict.kinds) for verdict in verdicts] == [
        (Decision.REJECT, (RefusalKind.FEW_FIXED,))
    ] * 2
    assert " 0.2 " in evolution.reason
    world.proposer = proposing(RIGHT)
    again = world.evolve(retry(world.parts, evolution))
    assert again.state is EvolutionState.PROBATION
    numbers = {
        (trial.evolution_id, trial.candidate_id[-1:], trial.set): trial.number
        for trial in world.trials()
        if trial.arm is Arm.CANDIDATE
    }
    assert sorted(number for (_, _, which), number in numbers.items() if which is TrialSet.EVIDENCE) == [
        1,
        2,
        3,
    ]
    assert {number for (_, _, which), number in numbers.items() if which is not TrialSet.EVIDENCE} == {1}
    assert pairs(world)[TrialSet.EVIDENCE] > 8 + 2 * 4  # the third needs more for the same claim
    assert not any(trial.number for trial in world.trials() if trial.arm is Arm.BASE)
    stands(world)


@pytest.mark.parametrize("after", [10**9, 9, 25, 43])
def test_of_several_the_one_that_leads_gets_the_pairs(world: World, after: int) -> None:
    """Also where a crash cuts the race: the same trials, the same numbers, the same end."""
    world.policy = LENIENT
    world.proposer = proposing(USELESS, FAULTY.replace("> 50", "> 52"), FAULTY.replace("> 50", "> 53"), RIGHT)
    world.seed()
    model = Model(
        world,
        lambda points, source: 0.95 if source == RIGHT or points != 50 else 0.3,
        seed=5,
        dies_after=after,
    ).install()
    evolution = world.open()
    if after < 10**9:
        with pytest.raises(KeyboardInterrupt):
            world.evolve(evolution)
        model.dies_after = 10**9
    evolution = world.evolve(evolution)
    assert world.source() == RIGHT, evolution.reason
    own = [trial for trial in world.trials() if trial.number and trial.set is TrialSet.EVIDENCE]
    numbers = {trial.candidate_id[-1]: trial.number for trial in own}
    assert numbers == {"1": 1, "2": 2, "3": 3, "4": 4}
    assert {(trial.candidate_id[-1], trial.number) for trial in own} == set(numbers.items()), (
        "each keeps its own"
    )
    made = Counter(trial.candidate_id[-1] for trial in own)
    assert made["4"] > max(made["1"], made["2"], made["3"])
    assert len(set(model.ids)) == len(model.ids)
    stands(world)


def test_a_verdict_stands_when_a_later_candidate_tries_the_base_more_often(world: World) -> None:
    world.policy = LENIENT
    tempting = FAULTY.replace("> 50", "> 40")
    world.proposer = proposing(tempting, RIGHT)

    def chance(points: int, source: str) -> float:
        if source == tempting:
            return float(points not in (45, 49))
        return certain(points, source)

    world.seed()
    Model(world, chance).install()
    evolution, verdicts = ended(world)
    assert evolution.state is EvolutionState.PROBATION
    assert [verdict.decision for verdict in verdicts] == [Decision.REJECT, Decision.PROMOTE]
    first, second = (
        {
            trial.task_id: trial.repeat
            for trial in world.trials()
            if trial.candidate_id == verdict.candidate_id
        }
        for verdict in verdicts
    )
    assert any(second[task_id] > repeat for task_id, repeat in first.items())
    stands(world)


def test_where_some_tasks_vary_both_rules_must_agree(world: World) -> None:
    """Evidence by flips, guards by rates: as soon as one says no, it is no."""
    world.policy = LENIENT
    world.seed()
    Model(world, varies=lambda points: points > 50).install()
    evolution, (verdict,) = ended(world)
    assert evolution.state is EvolutionState.PROBATION
    said = dict(zip(verdict.kinds, verdict.reasons, strict=True))
    assert said[SupportKind.FIXED].startswith("2 of 2 ")
    assert any("guard: a fall by 0.2" in reason for reason in verdict.reasons)
    by_task = Counter(trial.task_id for trial in world.trials() if trial.arm is Arm.CANDIDATE)
    assert by_task[world.failing[0].id] == world.policy.replay.repeats
    stands(world)


def test_a_varying_guard_rejects_what_the_flips_would_promote(world: World) -> None:
    world.policy = LENIENT
    world.seed()
    Model(
        world,
        lambda points, source: float(source == FAULTY),
        varies=lambda points: points > 50,
    ).install()
    evolution, (verdict,) = ended(world)
    assert evolution.state is EvolutionState.REJECTED
    assert verdict.decision is Decision.REJECT
    stands(world)


def test_a_flip_rejects_what_the_rates_would_promote(world: World) -> None:
    world.policy = LENIENT
    world.proposer = proposing(FAULTY.replace("> 50", "> 40"))
    world.seed()
    Model(world, lambda points, source: float(source != FAULTY), varies=lambda points: points == 50).install()
    _, (verdict,) = ended(world)
    assert verdict.decision is Decision.REJECT
    assert verdict.kinds[0] == RefusalKind.BROKEN
    stands(world)


def test_evidence_that_passes_afresh_is_not_reproducible(world: World) -> None:
    world.seed()
    Model(world, lambda points, source: 1.0).install()
    evolution, verdicts = ended(world)
    assert evolution.state is EvolutionState.NOT_REPRODUCIBLE
    assert evolution.reason == "it passed 4 of 4 trials on the base, at most 50% are needed for evidence"
    assert verdicts == []
    assert world.proposer.briefs == []


def test_guards_that_fail_by_themselves_serve_not_and_what_fails_alike_has_to_be_mended(world: World) -> None:
    world.policy = LENIENT
    world.seed()
    Model(world, lambda points, source: certain(points, source) if points == 50 else 0.0).install()
    evolution, (verdict,) = ended(world)
    assert evolution.state is EvolutionState.REJECTED
    assert verdict.kinds == (RefusalKind.OVER_FITTED,)
    assert pairs(world) == {TrialSet.EVIDENCE: 8, TrialSet.HOLD_OUT: 2}
    stands(world)


def test_without_tasks_to_guard_a_person_is_asked_and_by_the_rules_before_it_was_held(world: World) -> None:
    for points in (50, 50.0):
        world.live(world.task(points, "pass"))  # type: ignore[arg-type]
    Model(world).install()
    evolution, (verdict,) = ended(world)
    assert evolution.state is EvolutionState.AWAITING_CONSENT
    assert verdict.decision is Decision.PROMOTE
    candidate = world.ledger.get(Candidate, verdict.candidate_id)
    trials = trials_of(world.parts, candidate)
    doubted = {found.kind: found.reason for found in doubts(candidate, trials, world.policy)}
    assert "0 pass with it" in doubted[RefusalKind.FEW_GUARDS]
    assert "fewer than 3 (min_tasks)" in evolution.reason
    stands(world)
    before = judge(candidate, trials, replace(world.policy, edition=ASKED - 1))
    assert (before.decision, before.kinds) == (Decision.HOLD, (RefusalKind.FEW_TASKS,))


@pytest.mark.parametrize(
    "fault",
    [
        Fault("no_model", "the agent names no model"),
        Fault("budget", "the evolution may use 10 US dollars of model calls; 10 are used"),
        Fault("budget", "all runs of a day may use 20 US dollars of model calls; 20 are used"),
    ],
)
def test_what_no_model_answered_says_nothing_of_the_code(world: World, fault: Fault) -> None:
    world.seed()
    result = Result.BUDGET if fault.type == "budget" else Result.FAILED
    Model(world, said=lambda points, source: Outcome(result, 0.0, "", fault)).install()
    evolution = world.open()
    with raises(ModelAway, names=["50 points", fault.message]):
        world.evolve(evolution)
    assert world.trials() == []


def test_what_a_run_alone_may_use_is_its_own_affair(world: World) -> None:
    world.policy = LENIENT
    world.seed()
    own = Outcome(Result.BUDGET, 0.0, "", Fault("budget", "the run may use 5 calls of model calls"))
    Model(world, said=lambda points, source: own if source == RIGHT and points != 50 else None).install()
    _, (verdict,) = ended(world)
    assert verdict.decision is Decision.REJECT


def test_a_guard_that_only_the_candidate_makes_unreplayable_is_not_got_past(world: World) -> None:
    world.policy = LENIENT
    world.seed()
    lost = Outcome(Result.NOT_REPLAYABLE, 0.0, "a call is not on record")
    Model(world, said=lambda points, source: lost if source == RIGHT and points == 60 else None).install()
    _, (verdict,) = ended(world)
    assert verdict.decision is Decision.REJECT
    stands(world)


def test_evidence_that_cannot_be_replayed_afresh_ends_with_the_reason(world: World) -> None:
    world.seed()
    lost = Outcome(Result.NOT_REPLAYABLE, 0.0, "a call is not on record")
    Model(world, said=lambda points, source: lost).install()
    evolution, _ = ended(world)
    assert evolution.state is EvolutionState.NOT_REPRODUCIBLE
    assert evolution.reason == "not replayable: a call is not on record"


@pytest.mark.parametrize("models", ["replay-then-live", "replay"])
def test_a_policy_that_serves_records_counts_flips(world: World, models: str) -> None:
    world.policy = replace(WITHOUT_FRESH, replay=ReplayPolicy(models=models))
    world.seed()
    Model(world).install()
    evolution, _ = ended(world)
    assert evolution.state is EvolutionState.PROBATION
    assert not any(trial.number for trial in world.trials())
    assert {trial.repeat for trial in world.trials()} == {0, 1}


def test_a_forged_number_or_a_chosen_trial_shows_or_counts_not(world: World) -> None:
    world.policy = LENIENT
    world.seed()
    Model(world).install()
    _, (verdict,) = ended(world)
    candidate = world.ledger.get(Candidate, verdict.candidate_id)
    stored = trials_of(world.parts, candidate)
    forged = [replace(trial, number=5) if trial.number else trial for trial in stored]
    assert any("trials_sha256" in fault for fault in recompute(verdict, candidate, forged, world.policy))
    assert judge(candidate, forged, world.policy).decision is Decision.HOLD

    chosen = [replace(trial, repeat=trial.repeat - FIRST) if trial.number else trial for trial in stored]
    ruling = rule_on(chosen, world.policy.judge, SteadySummary(), {})
    assert ruling.decision is not Decision.PROMOTE
    gap = [trial for trial in stored if trial.repeat != FIRST]
    assert rule_on(gap, world.policy.judge, SteadySummary(), {}).decision is not Decision.PROMOTE
