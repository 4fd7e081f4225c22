"""A run that used up its budget counts as failed where it, or equal work, shows that this was its own fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from agentos.domain import Cost, Fault, Json, Outcome, Result, Run, RunEnd, Share, Sighting, Step, Task
from agentos.evolver.find.mining import mine
from tests.evolver.conftest import World

STEPS = Fault("limit", "the run made more than 4 steps")
TOKENS = Fault("budget", "the run may use 1000 tokens, and used them up")
USED = Cost(calls=4, tokens=1000, usd=0.1)
CIRCLE: Sequence[Json] = ["total", "total", "total", "total"]
AHEAD: Sequence[Json] = ["a", "b", "c", "d"]


def thinking(world: World, name: str) -> Task:
    made = replace(world.task(1, "x"), id=f"task-{name}", goal=name, call=None)
    world.ledger.add_task(made, Share.OPEN)
    return made


def ran(
    world: World,
    task: Task,
    calls: Sequence[Json],
    fault: Fault | None = STEPS,
    *,
    cost: Cost = USED,
) -> Run:
    """A live run that called these tools and was stopped, or that passed where there is no fault."""
    number = len(world.ledger.states)
    again = replace(task, id=f"{task.id}-{number}")
    world.ledger.add_task(again, Share.OPEN)
    now = datetime.now(UTC)
    run = Run(
        f"run-{number}", again.id, again.key, Share.OPEN, 1, world.registry.stable(), "fake", "none", now
    )
    world.ledger.begin_run(run)
    for index, call in enumerate(calls):
        step = Step(run.id, index, "act", {"tool": call}, {"ok": True, "output": index}, None, now, 1.0)
        world.ledger.append_step(step)
    result = Result.BUDGET if fault else Result.PASSED
    world.ledger.finish_run(
        run.id, Outcome(result, 0.0, "said so", fault, cost=cost), RunEnd(resources=("harness/desk",))
    )
    return world.ledger.run(run.id)


def mined(world: World) -> list[Sighting]:
    mine(world.parts)
    return list(world.ledger.find(Sighting))


def test_a_budget_that_was_too_low_is_nobodys_fault(world: World) -> None:
    task = thinking(world, "count all")
    ran(world, task, AHEAD)
    ran(world, task, AHEAD, TOKENS)
    ran(world, thinking(world, "other work"), AHEAD, None)  # what that took says nothing of this
    ran(world, task, [*AHEAD, "e"], None, cost=Cost(calls=5, tokens=1000))  # it took more: somebody raised it
    ran(world, task, AHEAD, None, cost=Cost(calls=4, tokens=1000, usd=0.2))
    assert mined(world) == []


def test_what_equal_work_did_with_as_much_could_have_been_done(world: World) -> None:
    task = thinking(world, "count all")
    ran(world, task, AHEAD[:3], None, cost=Cost(calls=3, tokens=900, usd=0.1))
    stopped = ran(world, task, AHEAD)
    (found,) = mined(world)
    assert found.run_id == stopped.id
    assert found.fingerprint.klass == "wrong_stop"
    assert found.fingerprint.signature == "agent/default | limit | d | "


def test_a_run_in_circles_would_have_used_up_any_budget(world: World) -> None:
    first, second = (
        ran(world, thinking(world, name), CIRCLE, fault) for name, fault in (("a", STEPS), ("b", TOKENS))
    )
    again = ["a", "b", "c", "a"]
    # the same call, but with another result: that is looking again
    lost = ran(world, thinking(world, "c"), again)
    found = mined(world)
    assert {sighting.run_id for sighting in found} == {first.id, second.id}
    assert lost.id not in {sighting.run_id for sighting in found}
    assert {sighting.fingerprint.klass for sighting in found} == {"wrong_stop"}


def test_what_many_runs_share_is_no_runs_fault(world: World) -> None:
    for message in ("the evolution may use 10 US dollars", "all runs of a day may use 20 US dollars"):
        ran(world, thinking(world, message), CIRCLE, Fault("budget", message))
    ran(world, thinking(world, "large"), CIRCLE, Fault("memory", "the run used more than 512 MB of memory"))
    assert mined(world) == []


def test_a_task_that_names_its_call_was_not_stopped_by_its_tool(world: World) -> None:
    task = world.task(50, "pass")
    ran(world, task, AHEAD[:1], None)
    ran(world, task, AHEAD)
    (found,) = mined(world)
    assert found.fingerprint.resource == "harness/desk"
    assert found.fingerprint.klass == "harness_error"
    assert "it did not come to an end: the run made more than N steps" in found.fingerprint.signature
