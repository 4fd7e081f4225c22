"""The calls of agents that a search gets, where tasks name none."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from agentos.domain import Fault, InputFile, Json, Limits, Outcome, Result, Run, RunEnd, Share, Step, Task
from agentos.evolver.propose.briefing import calls_in
from agentos.ports import ObservedRun
from tests.evolver.conftest import PATH, RESOURCE, World

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALL: Json = {"tool": "calc/grade", "args": {"path": "a.csv"}, "path": PATH}


def failed(world: World, name: str, action: Json, content: bytes = b"") -> ObservedRun:
    """A run of an agent, in which the tool broke on the one file that it was given."""
    inputs = (InputFile("a.csv", world.blobs.put(content), len(content)),)
    task = Task(name, name, f"goal {name}", None, inputs, "default", Limits(), (), (), None, NOW)
    fault = Fault("KeyError", "x", f"{PATH}:answer", RESOURCE)
    step = Step(f"run-{name}", 0, "act", action, {"ok": False}, fault, NOW, 1.0)
    world.ledger.add_task(task, Share.OPEN)
    run = Run(step.run_id, name, task.key, Share.OPEN, 1, world.registry.stable(), "fake", "none", NOW)
    world.ledger.begin_run(run)
    world.ledger.append_step(step)
    world.ledger.finish_run(run.id, Outcome(Result.FAILED, 0.0, "x", fault), RunEnd(resources=(RESOURCE,)))
    return ObservedRun(task, world.ledger.run(run.id), (step,))


def tasks_of(world: World, runs: Sequence[ObservedRun]) -> list[str]:
    return [case.task_id for case in calls_in(world.parts, runs, [], PATH).failing]


def test_equal_calls_on_other_content_are_two_cases(world: World) -> None:
    first, other, again = (
        failed(world, name, CALL, data) for name, data in (("a", b"1"), ("b", b"2"), ("c", b"1"))
    )
    assert tasks_of(world, [first, other]) == ["a", "b"]
    assert len(tasks_of(world, [first, again])) == 1


def test_a_step_that_a_harness_left_half_said_is_no_call(world: World) -> None:
    actions: list[Json] = [{"path": PATH}, {"path": PATH, "tool": "x"}, {"path": PATH, "tool": 1, "args": {}}]
    runs = [failed(world, f"task-{number}", action) for number, action in enumerate([*actions, CALL])]
    assert tasks_of(world, runs) == ["task-3"]
