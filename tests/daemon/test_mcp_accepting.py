"""A server that changes silently: it is stopped, a person is asked, and what they say holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.mcp.adding import NewServer, accept, add_server, look_at
from agentos.daemon.mcp.packages import Packages, archive
from agentos.daemon.mcp.server_box import ServerProgram
from agentos.daemon.mcp.server_skill import as_it_is_now, question_of
from agentos.daemon.requests.people import People
from agentos.daemon.requests.server_calls import RunServers, ServerParts, ServerToolAsks
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.domain import Effect, Mode, Question, Result, Task, new_id
from agentos.evolver.history.recordings import recording_of
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.messages import McpServed
from agentos.ports import Attempt, Plan
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap

pytestmark = pytest.mark.sandbox

SERVER = Path(__file__).parent / "mcp_servers"
COMMAND = ("python3", "{server}/server.py")


@pytest.fixture
def registry(home: Home, sandbox: Bubblewrap) -> Registry:
    add_server(
        home, sandbox, NewServer("counter", Packages(COMMAND), effects={"look": Effect.PURE}, files=SERVER)
    )
    return Registry(home.registry)


@pytest.fixture
def run(home: Home, registry: Registry, ledger: Ledger, sandbox: Bubblewrap) -> Callable[..., Attempt]:
    """Run a task whose server is another one by now than when it was added."""

    def execute(task: Task, plan: Plan | None = None) -> Attempt:
        return executor.execute(task, registry.stable(), new_id("run"), plan=plan)

    def program(asking: Any, tool: Any) -> ServerProgram:
        return ServerProgram(tool.resource, tool.command, {"CHANGED": "1"}, {}, archive(home, tool.brings))

    people = People(ledger)
    parts = ServerParts(sandbox, ledger.blobs, program, None, people.answerer, partial(accept, home))
    answerers = {
        "tool": lambda asking: ServerToolAsks(asking, RunServers(parts, asking)),
        "person": people.answerer,
    }
    executor = BoxExecutor(registry, ledger.blobs, sandbox, serving=RunServices(answerers=answerers))
    return execute


@pytest.fixture
def task(make_task: Callable[..., Task]) -> Task:
    return make_task("counter/count_up", text="hello")


def answered(registry: Registry, question: Question, text: str) -> Plan:
    """The run that goes on once a person has answered."""
    return Plan(recording=recording_of(registry.stable(), [], {question.text: text}), resume=True)


def version(registry: Registry) -> str:
    from agentos.domain import Kind, ResourceId

    found = registry.latest(ResourceId(Kind.SKILL, "counter"))
    return found.number if found else ""


def test_a_person_takes_it_and_it_is_a_new_version(
    run: Any, registry: Registry, ledger: Ledger, task: Task, make_task: Callable[..., Task]
) -> None:
    assert run(task).outcome.result is Result.WAITING
    (question,) = ledger.find(Question)
    assert "The MCP server counter was stopped" in question.text
    assert '-  "description": "Counts one up",' in question.text
    assert '+  "description": "Counts one up, and tells everybody",' in question.text
    before = version(registry)
    done = run(task, answered(registry, question, "take it"))
    assert (done.outcome.result, done.answer) == (Result.PASSED, {"count": 1, "text": "hello"})
    assert version(registry) != before
    tool = registry.files(registry.stable(), "skill/counter")["skill/counter/tools/look/tool.json"]
    assert b'"pure"' in tool  # what a person said of it stays
    assert run(make_task("counter/count_up", text="again")).outcome.result is Result.PASSED
    assert len([*ledger.find(Question)]) == 1


def test_a_no_leaves_it_stopped(run: Any, registry: Registry, ledger: Ledger, task: Task) -> None:
    run(task)
    (question,) = ledger.find(Question)
    before = version(registry)
    done = run(task, answered(registry, question, "leave it stopped"))
    assert done.outcome.fault.type == "changed"
    assert version(registry) == before


@pytest.mark.parametrize(("word", "end"), [("take it", ""), ("leave it stopped", "changed")])
def test_who_waited_before_an_outside_call_has_not_begun_it(
    run: Any,
    home: Home,
    ledger: Ledger,
    sandbox: Bubblewrap,
    make_task: Callable[..., Task],
    word: str,
    end: str,
) -> None:
    new = NewServer("sender", Packages(COMMAND), effects={"count-up": Effect.EXTERNAL}, files=SERVER)
    add_server(home, sandbox, new)
    registry = Registry(home.registry)
    task = replace(make_task("sender/count_up", text="hello"), effects=(*Effect,))
    waits = run(task)
    assert waits.outcome.result is Result.WAITING
    (question,) = ledger.find(Question)
    recording = recording_of(registry.stable(), [("run-1", waits.steps)], {question.text: word})
    done = run(task, Plan(recording=recording, resume=True))
    assert (done.outcome.fault.type if done.outcome.fault else "") == end


def test_a_trial_asks_nobody(run: Any, registry: Registry, ledger: Ledger, task: Task) -> None:
    plan = Plan(mode=Mode.REPLAY, recording=recording_of(registry.stable(), []))
    assert run(task, plan).outcome.fault.type == "changed"
    assert not [*ledger.find(Question)]


def test_an_answer_is_for_what_was_shown(home: Home, sandbox: Bubblewrap, registry: Registry) -> None:
    """Also where what differs is too long to be shown, another change is another question."""
    served = look_at(home, sandbox, "counter").served
    files = registry.files(registry.stable(), "skill/counter")

    def asked(end: str) -> str:
        tools = [{**served.tools[0], "description": "x" * 900, "annotations": {"title": "y" * 4_000 + end}}]
        tools[0]["inputSchema"] = {"type": "object", "description": "z" * 9_000 + end}
        return question_of("skill/counter", as_it_is_now("skill/counter", files, told(served, tools)))

    assert asked("a") != asked("b")
    assert len(asked("a")) < 4_000
    unchanged = as_it_is_now("skill/counter", files, served)
    assert (unchanged.changes, unchanged.difference) == ({}, "")


def told(served: McpServed, tools: list[dict[str, Any]]) -> McpServed:
    return served.model_copy(update={"tools": tools})


def test_a_tool_that_is_gone_goes(home: Home, sandbox: Bubblewrap, registry: Registry) -> None:
    served = look_at(home, sandbox, "counter").served
    assert accept(home, "skill/counter", told(served, served.tools[:1]))
    files = registry.files(registry.stable(), "skill/counter")
    assert [path for path in files if path.endswith("tool.json")] == [
        "skill/counter/tools/count_up/tool.json"
    ]
