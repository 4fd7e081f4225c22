"""Live runs are counted beside those before a promotion: a fall that is no accident takes it back."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agentos.domain import (
    IMPORT,
    Attestation,
    Candidate,
    Cost,
    EvolutionState,
    Fault,
    Mode,
    Outcome,
    Result,
    Run,
    RunEnd,
    Share,
    Step,
)
from agentos.evolver.find.mining import mine
from agentos.evolver.find.triage import triage
from agentos.evolver.policy import Probation
from agentos.evolver.watch.live_regression import LiveArms, LiveComparison, e_value
from agentos.evolver.watch.probation import settle, suspicions, watch, watch_rates

if TYPE_CHECKING:
    from conftest import World

    from agentos.domain import Evolution, Task

ALPHA = Probation().alpha
RESOURCE = "skill/calc"


def run_live(
    world: World,
    task: Task,
    outcome: Result = Result.PASSED,
    *,
    calls: int = 0,
    fault: Fault | None = None,
    share: Share = Share.OPEN,
    sandbox: str = "fake",
) -> Run:
    """A live run on what is stable that ends so, whatever the tool's text says."""
    if world.ledger.states[task.id] == "done":
        task = replace(task, id=f"{task.id}-{len(world.ledger.states)}")
        world.ledger.add_task(task, share)
    run = Run(
        f"run-{task.id}",
        task.id,
        task.key,
        share,
        1,
        world.registry.stable(),
        sandbox,
        "none",
        datetime.now(UTC),
    )
    world.ledger.begin_run(run)
    passed = outcome is Result.PASSED
    ended = Outcome(outcome, float(passed), "said so", fault, cost=Cost(calls=calls))
    world.ledger.finish_run(run.id, ended, RunEnd(resources=(RESOURCE,)))
    return world.ledger.run(run.id)


def measured(world: World) -> None:
    """Every suspicion is replayed, as the daemon does."""
    for found in suspicions(world.parts):
        watch(world.parts, found, world.ledger.run(found.run_id))


def many(world: World, first: int, count: int) -> list[Task]:
    """Different work of one kind, never asked for before."""
    return [world.task(first + number, "pass") for number in range(count)]


@pytest.fixture
def promoted(world: World) -> Evolution:
    """On probation, after thirty good runs of work that took no part in the replay."""
    world.seed()
    for task in many(world, 1000, 30):
        run_live(world, task)
    return world.evolve(world.open())


# --- the bet --------------------------------------------------------------------------------------


def pairs_of(dice: random.Random, before: float, now: float, beside: int, count: int) -> list[LiveComparison]:
    return [
        LiveComparison("task", dice.random() < now, tuple(dice.random() < before for _ in range(beside)))
        for _ in range(count)
    ]


def looked_at(pairs: list[LiveComparison]) -> int | None:
    """The run after which a look would roll back, looking after each."""
    return next((n for n in range(1, len(pairs) + 1) if e_value(pairs[:n]) >= 1 / ALPHA), None)


@pytest.mark.parametrize("rate", [0.5, 0.7, 0.9, 0.99])
@pytest.mark.parametrize("beside", [1, 3])
@pytest.mark.slow
def test_what_got_no_worse_is_rolled_back_at_most_as_often_as_promised(rate: float, beside: int) -> None:
    dice = random.Random(20260101)
    found = [looked_at(pairs_of(dice, rate, rate, beside, 40)) for _ in range(300)]
    assert sum(n is not None for n in found) / len(found) <= ALPHA


def test_a_fall_by_three_tenths_is_seen_within_the_watch() -> None:
    dice = random.Random(20260102)
    found = [looked_at(pairs_of(dice, 0.9, 0.6, 3, 40)) for _ in range(200)]
    assert sum(n is not None for n in found) / len(found) >= 0.85


@pytest.mark.parametrize(("beside", "runs"), [(1, 3), (2, 2), (3, 2)])
def test_a_total_loss_is_seen_at_once(beside: int, runs: int) -> None:
    assert looked_at([LiveComparison("task", False, (True,) * beside)] * 9) == runs


def test_no_single_failure_is_enough_and_no_gain_hides_for_ever() -> None:
    assert e_value([LiveComparison("task", False, (True, True, True))]) < 1 / ALPHA
    assert e_value([]) == pytest.approx(1.0)
    assert e_value([LiveComparison("task", True, (False,))] * 100) < 1


# --- in a world -----------------------------------------------------------------------------------


def test_what_stands_the_replay_and_fails_live_is_taken_back_and_not_tried_again(
    world: World, promoted: Evolution
) -> None:
    """What a replay cannot show again is counted."""
    for number, task in enumerate(many(world, 2000, 6), 1):
        run_live(world, task, Result.FAILED)
        measured(world)
        ended = watch_rates(world.parts)
        assert bool(ended) == (number == 3)
        if ended:
            break
    (fallen,) = ended
    assert fallen.state is EvolutionState.ROLLED_BACK
    assert "0 of 3 live runs pass, 3 of 3 did before it" in fallen.reason
    assert world.source().count("> 50") == 1
    attested = world.ledger.find(Attestation)[-1]
    assert attested.verdict == "mixed"
    assert len(attested.observed_regressions) == 3

    for task in (*world.failing, world.task(50, "pass  ")):
        world.live(task)
    mine(world.parts)
    again = [item for item in triage(world.parts) if item.fingerprint_id == promoted.fingerprint_id]
    (ended_again,) = [world.evolve(item) for item in again]
    assert ended_again.state is EvolutionState.CANNOT_FIX
    (candidate,) = world.ledger.find(Candidate, evolution_id=ended_again.id)
    assert candidate.screened == "the same edit was promoted before and rolled back"


def test_an_edit_that_a_person_took_back_is_remembered_too(world: World, promoted: Evolution) -> None:
    from agentos.evolver.promote.promotion import roll_back

    edit = world.ledger.get(Candidate, str(promoted.candidate_id)).edit
    assert world.parts.taken_back(edit.files) == ""
    roll_back(world.parts, promoted, "by hand", origin="revert")
    assert world.parts.taken_back(edit.files) == "the same edit was promoted before and rolled back"
    assert world.parts.taken_back({path: text + "#" for path, text in edit.files.items()}) == ""


def test_an_edit_whose_probe_failed_is_refused_with_what_the_probe_said(
    world: World, promoted: Evolution
) -> None:
    edit = world.ledger.get(Candidate, str(promoted.candidate_id)).edit
    why = "its probe failed, and nothing was moved: pass 1 of 3: it leaks"
    other = replace(promoted, id="evo-other", state=EvolutionState.PROMOTING, promoted=None, ended_at=None)
    world.parts.move(other, EvolutionState.ROLLED_BACK, why, end=True)
    assert world.parts.taken_back(edit.files) == f"{other.id} tried the same edit: {why}"


def test_one_failure_of_work_that_varies_is_no_suspicion(world: World, promoted: Evolution) -> None:
    task = world.task(77, "pass")
    run_live(world, task, calls=2)
    run_live(world, task, Result.FAILED, calls=2)
    assert suspicions(world.parts) == []
    assert watch_rates(world.parts) == []


def test_work_that_varies_is_watched_for_longer(world: World, promoted: Evolution) -> None:
    rules = world.policy
    world.policy = replace(rules, probation=replace(rules.probation, varying_runs=6))
    for task in many(world, 2000, 5):
        run_live(world, task, calls=1)
    assert settle(world.parts) == []
    run_live(world, world.task(3000, "pass"), calls=1)
    assert [item.id for item in settle(world.parts)] == [promoted.id]


def test_a_failure_that_is_no_proof_keeps_it_on_probation(world: World, promoted: Evolution) -> None:
    good, bad = many(world, 2000, 4), world.task(3000, "pass")
    run_live(world, bad, Result.FAILED)
    for task in good:
        run_live(world, task)
    assert watch_rates(world.parts) == []
    assert settle(world.parts) == []
    world.later = timedelta(days=8)
    assert settle(world.parts) == [], "it has to be measured first"
    measured(world)
    assert [item.id for item in settle(world.parts)] == [promoted.id]


@pytest.mark.parametrize(
    ("outcome", "fault"),
    [
        (Result.INFRA, None),
        (Result.CANCELLED, None),
        (Result.FAILED, Fault("no_model", "none is set up")),
        (Result.BUDGET, Fault("budget", "all runs of a day may use 5 USD")),
    ],
)
def test_what_says_nothing_of_the_code_rolls_nothing_back(
    world: World, promoted: Evolution, outcome: Result, fault: Fault | None
) -> None:
    for task in many(world, 2000, 8):
        run_live(world, task, outcome, fault=fault)
    assert watch_rates(world.parts) == []


def test_runs_that_eat_up_their_own_budget_are_a_fall(world: World, promoted: Evolution) -> None:
    for task in many(world, 2000, 3):
        run_live(world, task, Result.BUDGET, fault=Fault("budget", "the run may use 3 calls"))
    assert [item.id for item in watch_rates(world.parts)] == [promoted.id]


def test_runs_made_elsewhere_are_not_counted(world: World, promoted: Evolution) -> None:
    for task in many(world, 2000, 8):
        run_live(world, task, Result.FAILED, sandbox=IMPORT)
    assert watch_rates(world.parts) == []


def test_the_work_it_was_opened_for_is_counted_on_neither_side(world: World, promoted: Evolution) -> None:
    """It failed before: chosen for that, it would hide a fall, and its luck would look like one."""
    for _ in range(4):
        for task in world.failing:
            run_live(world, task, Result.FAILED)
    assert watch_rates(world.parts) == []


def test_runs_on_what_a_person_made_of_it_are_not_its_own(world: World, promoted: Evolution) -> None:
    world.registry.edit({"skill/calc/tools/grade.py": "def answer(points):\n    return 'x'\n"})
    for task in many(world, 2000, 8):
        run_live(world, task, Result.FAILED)
    assert watch_rates(world.parts) == []


def test_runs_that_are_pinned_to_the_base_say_nothing_of_it(world: World, promoted: Evolution) -> None:
    """They began after the promotion, on what stood before it: a swap may take a while."""
    for task in many(world, 2000, 8):
        stable, world.registry._main = world.registry._main, promoted.base
        run_live(world, task, Result.FAILED)
        world.registry._main = stable
    assert watch_rates(world.parts) == []
    assert settle(world.parts) == []


def test_a_hidden_task_is_not_named(world: World, promoted: Evolution) -> None:
    for number in range(3):
        run_live(
            world, world.task(2000 + number, "pass", Share.HOLD_OUT), Result.FAILED, share=Share.HOLD_OUT
        )
    (fallen,) = watch_rates(world.parts)
    assert "task-" not in fallen.reason
    assert world.ledger.find(Attestation)[-1].observed_regressions == ("a hold-out task",)


def test_what_fell_and_cannot_be_taken_back_says_so_once_and_never_settles(
    world: World, promoted: Evolution
) -> None:
    for task in many(world, 2000, 4):
        run_live(world, task, Result.FAILED)
    world.registry.edit({"skill/calc/tools/grade.py": world.source() + "# a remark\n"})
    (stuck,) = watch_rates(world.parts)
    assert stuck.state is EvolutionState.PROBATION
    assert "cannot be rolled back by itself" in stuck.reason
    assert watch_rates(world.parts) == []
    world.later = timedelta(days=8)
    assert settle(world.parts) == []


def test_after_a_roll_back_the_watch_of_others_begins_anew(world: World, promoted: Evolution) -> None:
    """Their runs were made while what is gone now was there."""
    beside = replace(promoted, id="evo-beside")
    for task in many(world, 2000, 3):
        run_live(world, task, Result.FAILED)
    assert len(LiveArms(world.parts, beside).since(40)) == 3
    assert [item.id for item in watch_rates(world.parts)] == [promoted.id]
    assert LiveArms(world.parts, beside).since(40) == []


# --- the measured watch ---------------------------------------------------------------------------


def test_a_suspicion_is_replayed_from_the_record_and_acts_on_nothing(
    world: World, promoted: Evolution
) -> None:
    task = world.task(80, "pass")
    world.live(task)
    run = run_live(world, task, Result.FAILED)
    call = {"tool": "mail", "args": {"to": "x"}, "path": "tool/mail/tool.py"}
    now = datetime.now(UTC)
    world.ledger.insert_step(Step(run.id, 0, "external", {**call, "number": 0}, None, None, now, 1.0))
    world.ledger.insert_step(Step(run.id, 1, "act", call, {"ok": True, "value": 1}, None, now, 1.0))
    (suspicion,) = suspicions(world.parts)
    world.executor.plans.clear()
    watch(world.parts, suspicion, run)
    assert world.executor.plans
    for plan in world.executor.plans:
        assert plan is not None
        assert plan.replays
        assert plan.mode is Mode.REPLAY_THEN_LIVE
        assert plan.recording is not None
        assert plan.recording.run_ids == (run.id,)
        assert plan.evolution_id == promoted.id
