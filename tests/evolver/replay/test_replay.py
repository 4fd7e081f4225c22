"""Which record a trial is served from, and what becomes of trials that have none."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from agentos.domain import (
    COMPARED_SETS,
    Arm,
    Decision,
    EvolutionState,
    Mode,
    Outcome,
    Result,
    Run,
    Share,
    Step,
    Task,
    Trial,
    TrialSet,
    Verdict,
    digest,
)
from agentos.errors import Unavailable
from agentos.evolver.history.recordings import packed, trajectory, unpacked
from agentos.evolver.policy import ReplayPolicy
from agentos.evolver.replay.jobs import TrialBatch
from agentos.evolver.replay.verification import run_again
from agentos.ports import Attempt, Plan
from agentos.testing import FakeExecutor, MemoryBlobs, MemoryLedger
from tests.evolver.conftest import WITHOUT_FRESH

if TYPE_CHECKING:
    from conftest import World

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SERVED = replace(WITHOUT_FRESH, replay=ReplayPolicy(models="replay-then-live"))
NOT_REPLAYABLE = Outcome(Result.NOT_REPLAYABLE, 0.0, "a call of 'send' is not on record")


def model_step(run_id: str, index: int = 0) -> Step:
    return Step(run_id, index, "model", {"model": ""}, {"message": {"content": "hm"}}, None, NOW, 1.0)


def with_models(world: World) -> None:
    """Every live run and every trial asked a model."""
    plain = world._script

    def thinking(task: Task, snapshot: object) -> Attempt:
        done = plain(task, snapshot)  # type: ignore[arg-type] # as the executor calls it
        return replace(done, steps=(model_step("trial"),))

    world.executor = FakeExecutor(thinking)
    for _, run in world.ledger.runs_after(0, 100):
        world.ledger.insert_step(model_step(run.id))


def by_trial(world: World) -> list[tuple[Trial, Plan]]:
    """The plan that each trial was executed by."""
    plans = [plan for plan in world.executor.plans if plan is not None]
    return list(zip(world.trials(), plans, strict=True))


def test_evidence_is_served_from_the_failing_run_and_guards_from_a_passing_one(world: World) -> None:
    world.policy = SERVED
    world.seed()
    with_models(world)
    assert world.evolve(world.open()).state is EvolutionState.PROBATION
    seen = set()
    for trial, plan in by_trial(world):
        assert plan.mode is Mode.REPLAY_THEN_LIVE
        assert plan.recording is not None
        assert (trial.recording,) == plan.recording.run_ids
        assert plan.evolution_id == trial.evolution_id
        outcome = world.ledger.run(trial.recording).outcome
        assert outcome is not None
        expected = Result.FAILED if trial.set is TrialSet.EVIDENCE else Result.PASSED
        assert outcome.result is expected
        seen.add(trial.set)
        assert trajectory(world.blobs, trial) == [model_step("trial")]
        assert trial.run_id == trial.id
    assert seen == set(COMPARED_SETS)


def test_the_newest_fitting_run_is_taken_and_none_that_says_nothing(world: World) -> None:
    world.policy = SERVED
    world.seed()
    task = world.failing[0]

    def later(result: Result, number: int, sandbox: str = "fake") -> Run:
        again = replace(task, id=f"{task.id}-{number}")
        world.ledger.add_task(again, Share.OPEN)
        stable = world.registry.stable()
        run = Run(f"run-later-{number}", again.id, task.key, Share.OPEN, 1, stable, sandbox, "none", NOW)
        world.ledger.begin_run(run)
        world.ledger.finish_run(run.id, Outcome(result, 0.0, ""))
        return run

    newest = later(Result.FAILED, 1)
    for number, result in enumerate((Result.PASSED, Result.INFRA, Result.WAITING, Result.CANCELLED), 2):
        later(result, number)
    later(Result.FAILED, 9, sandbox="import")
    with_models(world)
    world.evolve(world.open())
    of = {world.ledger.task(trial.task_id).key: trial.recording for trial in world.trials()}
    assert of[task.key] == newest.id


def test_work_that_asked_for_nothing_is_simply_run_again(world: World) -> None:
    world.seed()
    world.evolve(world.open())
    assert all(plan.recording is None for _, plan in by_trial(world))
    assert all(trial.recording == "" and trial.run_id == trial.id for trial in world.trials())


@pytest.mark.parametrize(
    ("models", "mode", "served"), [("replay", Mode.REPLAY, True), ("live", Mode.RECORD, False)]
)
def test_the_policy_says_who_answers_model_calls(world: World, models: str, mode: Mode, served: bool) -> None:
    world.policy = replace(WITHOUT_FRESH, replay=ReplayPolicy(models=models))
    world.seed()
    with_models(world)
    world.evolve(world.open())
    for _, plan in by_trial(world):
        assert plan.mode is mode
        assert plan.recording is not None  # for outside effects, whoever answers models
        assert bool(plan.recording.run_ids) is served


def test_a_trial_that_the_machinery_lost_keeps_its_run_id(world: World) -> None:
    """So that what it paid for before it was lost is served, not asked again."""
    world.seed()
    world.lost = 2
    ids: list[str] = []
    plain = world.executor.execute

    def execute(task: Task, snapshot: object, run_id: str, *rest: object, **more: object) -> Attempt:
        ids.append(run_id)
        return plain(task, snapshot, run_id, *rest, **more)  # type: ignore[arg-type] # passed on

    world.executor.execute = execute  # type: ignore[method-assign] # the fake's
    world.evolve(world.open())
    assert ids[0] == ids[1] == ids[2]
    assert ids[0] == world.trials()[0].run_id
    assert len(set(ids)) == len(world.trials())


def lose(world: World, which: Callable[[Task, bool], bool]) -> None:
    """The trials that cannot be replayed, by task and whether it runs on the base."""
    plain, base = world._script, world.registry.stable()

    def script(task: Task, snapshot: object) -> Attempt:
        done = plain(task, snapshot)  # type: ignore[arg-type] # as the executor calls it
        return replace(done, outcome=NOT_REPLAYABLE) if which(task, snapshot == base) else done

    world.executor = FakeExecutor(script)


def test_evidence_that_cannot_be_replayed_ends_the_evolution_with_the_reason(world: World) -> None:
    world.seed()
    lose(world, lambda task, on_base: on_base)
    ended = world.evolve(world.open())
    assert ended.state is EvolutionState.NOT_REPRODUCIBLE
    assert ended.reason == "not replayable: a call of 'send' is not on record"
    assert len(world.executor.calls) == 4  # not tried again


def test_evidence_without_a_record_is_left_out_and_the_rest_decides(world: World) -> None:
    world.seed()
    lost = world.failing[0].id
    lose(world, lambda task, on_base: task.id == lost)
    ended = world.evolve(world.open())
    assert ended.state is EvolutionState.PROBATION
    (verdict,) = world.ledger.find(Verdict)
    assert verdict.fixed == (world.failing[1].id,)


def test_guards_that_only_the_candidate_makes_unreplayable_hold_the_promotion(world: World) -> None:
    world.seed()
    lose(world, lambda task, on_base: not on_base and task.checks[0].spec["value"] == "fail")
    before = world.registry.stable()
    ended = world.evolve(world.open())
    assert ended.state is EvolutionState.HELD
    assert "cannot be replayed with it" in ended.reason
    assert world.registry.stable() == before
    (verdict,) = world.ledger.find(Verdict)
    assert verdict.decision is Decision.HOLD
    trials = [trial for trial in world.trials() if trial.arm is Arm.CANDIDATE]
    assert {trial.set for trial in trials} == set(COMPARED_SETS)  # nothing was cut short


def test_trials_are_run_again_from_their_own_records(world: World) -> None:
    world.seed()
    with_models(world)
    evolution = world.evolve(world.open())
    world.executor.plans.clear()
    seen: list[str] = []
    compared = run_again(world.parts, evolution.id, lambda one: seen.append(one.trial.id))
    assert [item.trial for item in compared] == world.trials()
    assert all(item.differences == () for item in compared)
    assert sorted(seen) == sorted(trial.id for trial in world.trials())
    for trial, plan in by_trial(world):
        assert plan.mode is Mode.REPLAY
        assert plan.recording is not None
        assert plan.recording.run_ids == (trial.run_id,)
        assert plan.recording.snapshot == trial.snapshot


def test_what_differs_from_a_trials_record_is_said(world: World) -> None:
    world.seed()
    evolution = world.evolve(world.open())
    plain = world._script

    def script(task: Task, snapshot: object) -> Attempt:
        done = plain(task, snapshot)  # type: ignore[arg-type] # as the executor calls it
        number = len(world.executor.calls) - 1
        if number == 0:
            return replace(done, outcome=NOT_REPLAYABLE, answer_sha256="other")
        if number == 1:
            return replace(done, steps=(model_step("x"),))
        if number == 2:
            raise Unavailable("no sandbox")
        return done

    world.executor = FakeExecutor(script)
    found = run_again(world.parts, evolution.id)
    assert found[0].differences[0] == "the result was failed, is not_replayable"
    assert found[0].differences[-1].startswith("the answer was")
    assert found[1].differences == ("the result is the same, and the way there differs from step 0 on",)
    assert found[2].differences == ("it could not be run again: no sandbox",)
    assert all(item.differences == () for item in found[3:])


def test_the_packed_form_of_no_steps(world: World) -> None:
    assert unpacked(packed([])) == []


class CountedLedger(MemoryLedger):
    """Keeps how many trials each transaction stored."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: list[int] = []

    def put(self, *records: object) -> None:
        super().put(*records)
        if records and isinstance(records[0], Trial):
            self.stored.append(len(records))


class CountedBlobs(MemoryBlobs):
    """Keeps how often one was put."""

    puts = 0

    def put(self, data: bytes) -> str:
        self.puts += 1
        return super().put(data)


@pytest.fixture
def some_trial(world: World) -> Trial:
    for points, expected in ((50, "pass"), (50.0, "pass"), (60, "pass"), (10, "fail")):
        world.live(world.task(points, expected))  # type: ignore[arg-type] # the tool takes both
    world.evolve(world.open())
    return world.trials()[0]


def test_trials_that_cost_nothing_are_stored_together_even_if_the_batch_raises(some_trial: Trial) -> None:
    ledger, later = CountedLedger(), time.monotonic() + 3600
    with suppress(Unavailable), TrialBatch(ledger, MemoryBlobs()) as batch:
        for number in range(5):
            batch.add(replace(some_trial, id=f"trial-{number}"), later, asked=False)
        assert ledger.stored == []
        raise Unavailable("the sandbox is gone")
    assert ledger.stored == [5]


@pytest.mark.parametrize(("asked", "ago_s"), [(True, -3600), (False, 5)], ids=["it was paid", "it took long"])
def test_what_may_not_be_made_again_is_stored_at_once_with_all_before_it(
    some_trial: Trial, asked: bool, ago_s: float
) -> None:
    ledger, now = CountedLedger(), time.monotonic()
    with TrialBatch(ledger, MemoryBlobs()) as batch:
        batch.add(replace(some_trial, id="trial-0"), now + 3600, asked=False)
        batch.add(replace(some_trial, id="trial-1"), now - ago_s, asked=asked)
        assert ledger.stored == [2]
        batch.add(replace(some_trial, id="trial-2"), now + 3600, asked=False)
    assert ledger.stored == [2, 1]


def test_trajectories_of_a_batch_are_one_blob_and_each_trial_finds_its_own(some_trial: Trial) -> None:
    ledger, blobs, later = CountedLedger(), CountedBlobs(), time.monotonic() + 3600
    did = {f"trial-{number}": [model_step(f"trial-{number}")] for number in range(3)}
    long = [replace(model_step("trial-long"), observation="x" * 100_000)]
    with TrialBatch(ledger, blobs) as batch:
        for name, steps in (did | {"trial-long": long}).items():
            data = packed(steps)
            trial = replace(some_trial, id=name, steps_sha256=digest(data), steps_in="")
            batch.add(trial, later, asked=False, did=data)
    assert (ledger.stored, blobs.puts) == ([4], 2)  # what is long has a blob of its own
    for name, steps in (did | {"trial-long": long}).items():
        assert trajectory(blobs, batch.stored[name]) == steps == trajectory(blobs, ledger.get(Trial, name))
    wrong = replace(batch.stored["trial-0"], steps_sha256="0" * 64)
    with pytest.raises(Unavailable):
        trajectory(blobs, wrong)


class _Unheard(CountedLedger):
    """Stores what it is given the first time, and is gone before it can say so."""

    def put(self, *records: object) -> None:
        heard = bool(self.stored)
        super().put(*records)
        if not heard:
            raise Unavailable("the server went away")


@pytest.mark.parametrize("count", [1, 2])
def test_trials_of_which_nobody_heard_that_they_are_stored_are_the_same_the_next_time(
    some_trial: Trial, count: int
) -> None:
    ledger, blobs = _Unheard(), MemoryBlobs()
    with TrialBatch(ledger, blobs) as batch:
        for number in range(3):
            data, asked = packed([model_step(f"trial-{number}")]), number == count - 1
            trial = replace(some_trial, id=f"trial-{number}", steps_sha256=digest(data), steps_in="")
            with suppress(Unavailable):
                batch.add(trial, time.monotonic() + 3600, asked=asked, did=data)
    assert len(batch.stored) == 3
    assert all(trajectory(blobs, trial) for trial in batch.stored.values())


def test_the_only_trajectory_of_a_batch_is_a_blob_by_its_own_digest(some_trial: Trial) -> None:
    ledger, blobs, data = CountedLedger(), CountedBlobs(), packed([model_step("trial-0")])
    with TrialBatch(ledger, blobs) as batch:
        trial = replace(some_trial, id="trial-0", steps_sha256=digest(data), steps_in="")
        batch.add(trial, time.monotonic(), asked=True, did=data)
    assert batch.stored == {"trial-0": trial}
    assert blobs.get(trial.steps_sha256) == data


def test_an_evolution_whose_trials_ask_a_model_stores_each_for_itself(world: World) -> None:
    world.ledger = ledger = CountedLedger()
    for points, expected in ((50, "pass"), (50.0, "pass"), (60, "pass"), (10, "fail")):
        world.live(world.task(points, expected))  # type: ignore[arg-type] # the tool takes both
    with_models(world)
    world.policy = SERVED
    world.evolve(world.open())
    assert set(ledger.stored) == {1}
