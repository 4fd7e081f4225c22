"""A finished run is run again from its record, in a real box; of what differs one cause is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agentos.daemon.service import Service, service
from agentos.domain import Outcome, Result, Run, Share, Step, Task, new_id
from agentos.errors import ErrorKind, UserError
from agentos.evolver.replay.verification import Cause, Rerun, rerun
from agentos.home import Home
from agentos.sandboxes.choice import Choice
from agentos.settings import load_settings
from agentos.trajectories.past import ImportTarget, Source, past_of
from agentos.trajectories.readers.formats import read
from tests.refusals import raises

pytestmark = pytest.mark.sandbox
NOW = datetime.now(UTC)


@pytest.fixture
def served(home: Home, choice: Choice) -> Iterator[Service]:
    with service(home, load_settings(home.settings), socket_name="test.sock", given=choice) as opened:
        opened.sandbox.start()
        yield opened


@pytest.fixture
def again(served: Service, make_task: Callable[..., Task]) -> Callable[..., Rerun]:
    """A run of ``double``, stored as it was but for what ``of`` (steps) and ``values`` (the run) change."""

    def make(of: Callable[[list[Step]], list[Step]] = list, **values: Any) -> Rerun:
        task = make_task("double", n=21, expect=42)
        served.ledger.add_task(task, Share.OPEN)
        stable = served.registry.stable()
        run = Run(new_id("run"), task.id, task.key, Share.OPEN, 1, stable, "bubblewrap", "namespaces", NOW)
        served.ledger.begin_run(run)
        done = served.parts.executor.execute(task, stable, run.id)
        for step in of(list(done.steps)):
            served.ledger.append_step(step)
        run = replace(run, **{"outcome": done.outcome, "answer": done.answer, **values})
        return rerun(served.parts, run, served.registry.find_tool)

    return make


def called(**values: Any) -> Callable[[list[Step]], list[Step]]:
    """The steps, of which the first call was another."""

    def change(steps: list[Step]) -> list[Step]:
        at = next(at for at, step in enumerate(steps) if step.node == "act")
        return [*steps[:at], replace(steps[at], **values), *steps[at + 1 :]]

    return change


def test_a_run_is_the_same_again_or_one_cause_is_told(again: Callable[..., Rerun]) -> None:
    same = again()
    assert (same.cause, same.why, same.before, same.now) == (Cause.NONE, "", "passed", "passed")

    other = again(called(observation={"ok": True, "output": {"n": 43}}))
    assert other.cause is Cause.RESULT
    assert "double" in other.why
    assert "43" in other.why

    way = again(called(action={"tool": "triple", "args": {}}))
    assert (way.cause, way.step) == (Cause.WAY, other.step)

    assert again(lambda steps: steps[:-1]).cause is Cause.WAY
    assert again(answer={"n": 43}).cause is Cause.ANSWER
    judged = again(outcome=Outcome(Result.FAILED, 0.0, "it was 43"))
    assert (judged.cause, judged.before, judged.now) == (Cause.CHECKS, "failed", "passed")
    with raises(UserError, ErrorKind.AT_WORK):
        again(outcome=Outcome(Result.WAITING, 0.0, ""))


def imported(served: Service, tool: str, args: str, answer: str) -> Rerun:
    call = {"id": "c", "type": "function", "function": {"name": tool, "arguments": args}}
    messages = [
        {"role": "user", "content": "double it"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": answer},
        {"role": "assistant", "content": "there"},
    ]
    (found,) = read({"messages": messages, "outcome": "failed"})
    past = past_of(found, Source("openai-chat", "x", 1), ImportTarget(served.registry.stable(), 0.2, NOW))
    served.ledger.add_past(past.task, past.run, past.steps)
    return rerun(served.parts, past.run, served.registry.find_tool)


def test_imported_calls_of_tools_that_are_here_are_made_again(served: Service) -> None:
    same = imported(served, "test-kit__double", '{"n": 4}', '{"n": 8}')
    assert (same.cause, same.calls, same.passed_over) == (Cause.NONE, 1, 0)
    other = imported(served, "double", '{"n": 4}', '{"n": 9}')
    assert (other.cause, other.step) == (Cause.RESULT, 3)
    with raises(UserError, ErrorKind.MISMATCHED):
        imported(served, "elsewhere", "{}", "x")
