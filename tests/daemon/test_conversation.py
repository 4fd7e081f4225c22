"""What a run asks while it is under way: answered side by side, recorded by the kernel, held to its limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from agentos.daemon.requests.model_requests import PendingCalls, model_asks
from agentos.daemon.requests.run_requests import Denied, RequestHandler, ToolAsks
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.domain import Json, Limits, Mode, ModelSpec, Result, Task, new_id
from agentos.errors import ModelFailed, Unavailable
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.models.redaction import Redactor
from agentos.ports import Attempt, Plan
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.testing import FakeModels
from tests.refusals import raises

pytestmark = pytest.mark.sandbox

SPEC = ModelSpec("fake", "openai/fake", "", {})
HELLO = "def run(sdk):\n    reply = sdk.model({'messages': [{'role': 'user', 'content': sdk.task.goal}]})\n"
ANSWER = "    sdk.finish(reply['choices'][0]['message']['content'])\n"


def spoken(text: str) -> Mapping[str, Json]:
    return {"content": text}


class World:
    def __init__(self, home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Any) -> None:
        self.registry = Registry(home.registry)
        self.ledger = ledger
        self.sandbox = sandbox
        self.task = replace(make_task("double", n=1), call=None, goal="say hello", id=new_id("task"))

    def run(
        self,
        harness: str,
        models: FakeModels,
        plan: Plan | None = None,
        limits: Limits | None = None,
        redact: Callable[[Json], Json] = lambda value: value,
        **more: Any,
    ) -> Attempt:
        self.registry.commit({"harness/default/harness.py": harness.encode()}, "Another harness", "edit")
        answerers = {"model": model_asks(models, lambda asking: (SPEC,)), **more}
        serving = RunServices(models=lambda task, snapshot: (SPEC,), answerers=answerers, redact=redact)
        self.executor = executor = BoxExecutor(
            self.registry, self.ledger.blobs, self.sandbox, serving=serving
        )
        task: Task = replace(self.task, limits=limits) if limits else self.task
        return executor.execute(task, self.registry.stable(), "run-m", plan=plan)


@pytest.fixture
def world(home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Any) -> World:
    return World(home, ledger, sandbox, make_task)


def test_a_model_call_is_answered_and_recorded_by_the_kernel(world: World) -> None:
    models = FakeModels(lambda request, number: spoken(f"you said {request['messages'][0]['content']}"))
    done = world.run(HELLO + ANSWER, models, Plan(mode=Mode.REPLAY_THEN_LIVE, evolution_id="evo-1"))
    assert done.answer == "you said say hello"
    assert done.outcome.result is Result.PASSED
    (step,) = [step for step in done.steps if step.node == "model"]
    assert step.observation["message"]["content"] == "you said say hello"
    assert (done.outcome.cost.calls, done.outcome.cost.live_calls) == (1, 1)
    assert (done.outcome.cost.tokens, done.outcome.cost.usd) == (15, 0.001)
    (grant,) = models.grants
    assert (grant.run_id, grant.mode, grant.evolution_id) == ("run-m", Mode.REPLAY_THEN_LIVE, "evo-1")
    assert models.closed == 1


def test_who_waits_long_for_an_answer_is_known(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    pending = PendingCalls()
    seen = []

    def answer(request: Mapping[str, Any], number: int) -> Mapping[str, Json]:
        seen.append(pending.long())
        monkeypatch.setattr("agentos.daemon.requests.model_requests._LONG_S", 0.0)
        seen.append(pending.long())
        return spoken("hello")

    models = FakeModels(answer)
    world.run(HELLO + ANSWER, models, model=model_asks(models, lambda asking: (SPEC,), pending))
    assert [*seen, pending.long()] == [set(), {"run-m"}, set()]


def test_a_call_that_a_cancelled_run_waits_for_is_of_its_cost(world: World) -> None:
    used = {"input_tokens": 40, "output_tokens": 60, "usd": 0.5, "estimated": True}

    def answer(request: Mapping[str, Any], number: int) -> Mapping[str, Json]:
        world.executor.cancel("run-m")
        deadline = time.monotonic() + 60
        while not models.closed and time.monotonic() < deadline:
            time.sleep(0.01)
        raise ModelFailed("not_allowed", "the session was closed", used)

    models = FakeModels(answer)
    done = world.run(HELLO + ANSWER, models)
    assert done.outcome.result is Result.CANCELLED
    assert (done.outcome.cost.tokens, done.outcome.cost.usd, done.outcome.cost.calls) == (100, 0.5, 1)


def test_calls_from_several_threads_are_in_flight_together(world: World) -> None:
    together = threading.Barrier(8)

    def answer(request: Mapping[str, Any], number: int) -> Mapping[str, Json]:
        together.wait(20)  # passes only when eight are here at once
        return spoken(request["messages"][0]["content"] * 2)

    done = world.run(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def ask(sdk, text):\n"
        "    reply = sdk.model({'messages': [{'role': 'user', 'content': text}]})\n"
        "    return reply['choices'][0]['message']['content']\n"
        "def run(sdk):\n"
        "    with ThreadPoolExecutor(8) as pool:\n"
        "        sdk.finish(list(pool.map(lambda text: ask(sdk, text), 'abcdefgh')))\n",
        FakeModels(answer),
    )
    assert done.answer == ["aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh"]
    assert [step.index for step in done.steps] == list(range(8))


@pytest.mark.parametrize(
    ("kind", "result"),
    [("budget", Result.BUDGET), ("not_recorded", Result.NOT_REPLAYABLE), ("not_allowed", Result.FAILED)],
)
def test_a_call_can_end_the_run(world: World, kind: str, result: Result) -> None:
    def answer(request: Mapping[str, Any], number: int) -> Mapping[str, Json]:
        raise ModelFailed(kind, "the reason")

    done = world.run(HELLO + "    sdk.finish('went on regardless')\n", FakeModels(answer))
    assert (done.outcome.result, done.outcome.reason) == (result, "the reason")
    assert done.steps[-1].observation == {"error": kind, "message": "the reason"}


def test_a_model_that_is_away_voids_the_run(world: World) -> None:
    def answer(request: Mapping[str, Any], number: int) -> Mapping[str, Json]:
        raise ModelFailed("unreachable", "connection refused")

    with raises(Unavailable, names=["connection refused"]):
        world.run(HELLO + ANSWER, FakeModels(answer))


def test_what_the_agent_can_deal_with_is_told_to_it(world: World) -> None:
    def answer(request: Mapping[str, Any], number: int) -> Mapping[str, Json]:
        raise ModelFailed("context", "too long")

    harness = (
        "from agentos.worker.sdk import Refused\n"
        "def run(sdk):\n"
        "    try:\n"
        "        sdk.model({'messages': []})\n"
        "    except Refused as error:\n"
        "        sdk.finish([error.fault.type, error.fault.message])\n"
    )
    assert world.run(harness, FakeModels(answer)).answer == ["context", "too long"]


def test_an_ask_that_nobody_answers_is_refused(world: World) -> None:
    harness = (
        "from agentos.worker.sdk import Refused\n"
        "def run(sdk):\n"
        "    try:\n"
        "        sdk.recall('anything')\n"
        "    except Refused as error:\n"
        "        sdk.finish(error.fault.type)\n"
    )
    assert world.run(harness, FakeModels(lambda request, number: spoken(""))).answer == "not_available"


def test_a_bug_of_an_answerer_ends_the_run_at_once_and_is_heard_of(world: World) -> None:
    class Broken(RequestHandler):
        def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
            raise KeyError("a bug")

    began = time.monotonic()
    with pytest.raises(KeyError, match="a bug"):
        world.run(
            "def run(sdk):\n    sdk.recall('x')\n",
            FakeModels(lambda request, number: spoken("")),
            recall=lambda asking: Broken(),
        )
    assert time.monotonic() - began < 15


def test_a_run_that_hangs_in_an_answer_ends_on_time(world: World) -> None:
    class Slow(RequestHandler):
        def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
            time.sleep(1.5)
            raise Denied("late", "too late for anybody")

    began = time.monotonic()
    done = world.run(
        "def run(sdk):\n    sdk.recall('x')\n",
        FakeModels(lambda request, number: spoken("")),
        limits=Limits(wall_s=0.5),
        recall=lambda asking: Slow(),
    )
    assert done.outcome.result is Result.TIMEOUT
    assert time.monotonic() - began < 15


def test_a_flood_of_asks_ends_the_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentos.daemon.requests.run_requests.ASKS_MAX", 20)
    harness = (
        "from agentos.worker.sdk import Refused\n"
        "def run(sdk):\n"
        "    while True:\n"
        "        try:\n"
        "            sdk.recall('x')\n"
        "        except Refused:\n"
        "            pass\n"
    )
    done = world.run(harness, FakeModels(lambda request, number: spoken("")))
    assert (done.outcome.result, done.outcome.reason) == (Result.BUDGET, "the run asked more than 20 times")


@pytest.mark.parametrize("what", ["sdk._talk.send(frame(deep))", "sdk._talk.ask('recall', {'query': deep})"])
def test_what_is_nested_too_deeply_ends_the_box_and_not_the_daemon(world: World, what: str) -> None:
    """Redaction walks by recursion, and there is more on the stack there than where the frame was read."""
    harness = (
        "from agentos.messages import StepFrame\n"
        "def frame(value):\n"
        "    return StepFrame(node='act', action=value, observation=None, duration_ms=0)\n"
        "def run(sdk):\n"
        "    deep = 'sk-'\n"
        "    for _ in range(600):\n"
        "        deep = [deep]\n"
        f"    {what}\n"
    )
    done = world.run(harness, FakeModels(lambda request, number: spoken("")), redact=Redactor([]).value)
    assert done.outcome.result is Result.FAILED
    assert "nested more than" in done.outcome.reason


def test_a_run_that_only_asks_fills_no_memory_but_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight mebibytes for each of ten thousand asks would wait for their turn in the daemon."""
    monkeypatch.setattr("agentos.daemon.requests.run_requests._HELD_MAX", 100_000)
    answered = threading.Event()
    seen: list[int] = []

    class Slow(RequestHandler):
        def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
            seen.append(len(seen))
            answered.wait(1.0)
            return {"memories": []}

    harness = (
        "from agentos.messages import Ask\n"
        "def run(sdk):\n"
        "    for number in range(40):\n"
        "        sdk._talk.send(Ask(id=number, what='recall', body={'query': 'x' * 40_000}))\n"
    )
    world.run(
        harness,
        FakeModels(lambda request, number: spoken("")),
        limits=Limits(wall_s=3),
        recall=lambda asking: Slow(),
    )
    assert 2 <= len(seen) <= 10  # two at a time, each for a second


def test_an_answer_that_no_frame_can_hold_is_said_to_be_too_large(world: World) -> None:
    harness = (
        "from agentos.worker.sdk import Refused\n"
        "def run(sdk):\n"
        "    try:\n"
        "        sdk.model({'messages': []})\n"
        "    except Refused as error:\n"
        "        sdk.finish(error.fault.type)\n"
    )
    models = FakeModels(lambda request, number: spoken("x" * (9 << 20)))
    assert world.run(harness, models, limits=Limits(wall_s=20)).answer == "limit"


def test_a_refusal_may_quote_what_is_no_text(world: World) -> None:
    harness = (
        "from agentos.worker.sdk import Refused\n"
        "def run(sdk):\n"
        "    try:\n"
        "        sdk._talk.ask('tool', {'tool': '\\ud800', 'args': {}})\n"
        "    except Refused as error:\n"
        "        sdk.finish(error.fault.type)\n"
    )
    models = FakeModels(lambda request, number: spoken(""))
    assert world.run(harness, models, tool=ToolAsks).answer == "unknown_tool"


FLOODS = {
    "steps of empty lists": "sdk._talk.send(StepFrame(node='act', action=None, observation=[[]] * 20_000, duration_ms=0))",
    "asks": "sdk._talk.send(Ask(id=0, what='tool', body={'tool': 'x' * 100_000}))",
}


@pytest.mark.parametrize("what", FLOODS)
def test_what_a_run_sends_is_held_to_a_multiple_of_its_output(world: World, what: str) -> None:
    harness = (
        "from agentos.messages import Ask, StepFrame\n"
        "def run(sdk):\n"
        "    for _ in range(10_000):\n"
        f"        {FLOODS[what]}\n"
    )
    limits = Limits(wall_s=60, output_bytes=100_000, steps=10_000)
    done = world.run(harness, FakeModels(lambda request, number: spoken("")), limits=limits)
    assert done.outcome.result is Result.BUDGET, done.outcome.reason
    assert done.outcome.fault is not None
    assert done.outcome.fault.type == "limit"
    assert len(done.steps) < 100
