"""Runs that ask models, killed at random moments: nothing is paid twice, nothing is done twice.

The real gateway, a real model server that counts, real boxes, a real process that is killed.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.requests.model_requests import model_asks
from agentos.daemon.requests.run_requests import ToolAsks
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.domain import Effect, Limits, Mode, ModelSpec, Result, Share, Task, TaskState, new_id
from agentos.evolver.history.recordings import recording_of, told, whole
from agentos.gateway.client import GatewayModels
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.ports import Plan
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.settings import load_settings
from agentos.testing import ModelServer
from agentos.testing.modelserver.replies import ServerReply, say
from tests.command_server import PATIENCE_S, Command, command_server

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

KILLS = int(os.environ.get("AGENTOS_TEST_KILLS", "2"))
AT_ONCE = 3  # kills of one task
TURNS = 4 * AT_ONCE  # so that a run is not over before its last kill
SPEC = ModelSpec("main", "openai/scripted", "local", {})

# A daemon's share in a run, in a process that can be killed.
DRIVER = """
import sys
from datetime import UTC, datetime
from agentos.daemon.run import tasks
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.daemon.requests.model_requests import model_asks
from agentos.daemon.requests.run_requests import ToolAsks
from agentos.domain import ModelSpec
from agentos.gateway.client import GatewayModels
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.settings import load_settings

tasks.MAX_ATTEMPTS = tasks.MAX_DEATHS = 1_000
home = Home.find(sys.argv[1])
settings = load_settings(home.settings)
ledger, registry, models = Ledger(home.ledger), Registry(home.registry), GatewayModels(home, settings)
spec = ModelSpec("main", "openai/scripted", "local", {})
answerers = {"model": model_asks(models, lambda asking: (spec,)), "tool": ToolAsks}
with Bubblewrap(home.root, settings.run_uid) as sandbox:
    serving = RunServices(models=lambda bundle, snapshot: (spec,), answerers=answerers)
    executor = BoxExecutor(registry, ledger.blobs, sandbox, serving=serving)
    tasks.TaskRunner(ledger, registry, executor, tasks.StopSignal()).attempt(sys.argv[2], datetime.now(UTC))
models.close()
"""
HARNESS = f"""
def run(sdk):
    seen = []
    for turn in range({TURNS}):
        messages = [{{"role": "user", "content": f"turn {{turn}} after {{seen}}"}}]
        said = sdk.model({{"messages": messages}})["choices"][0]["message"]["content"]
        seen.append(said)
        for tool in ("note", "look", "send"):
            result = sdk.call_tool(tool, {{"text": f"file{{turn}}"}})
            seen.append(result.output["text"] if result.ok else result.fault.type)
    sdk.finish(seen)
"""
TOOL = '''"""{name}."""
import os, random
from pydantic import BaseModel
TOOL = {{"name": "{name}", "description": "for a test", "effects": ["{effect}"]}}
class Input(BaseModel):
    text: str
class Output(BaseModel):
    text: str
def run(input: Input) -> Output:
    return Output(text=str({value}))
'''


def slowly(request: Any, number: int) -> ServerReply:
    return say(f"answer {number}", delay_s=0.05)


@pytest.fixture
def server(home: Home, monkeypatch: pytest.MonkeyPatch) -> Any:
    with ModelServer(slowly) as server:
        with home.settings.open("a") as file:
            file.write(f'\n[providers.local]\napi_base = "{server.base_url}"\nkey_env = "RESUMING_API_KEY"\n')
        monkeypatch.setenv("RESUMING_API_KEY", "sk-for-the-killed-0123456789")
        yield server


@pytest.fixture
def new_task(home: Home, ledger: Ledger, make_task: Callable[..., Task]) -> Callable[[], Task]:
    tools = (
        ("note", "write", "open(input.text, 'w').write('x')"),
        ("look", "read", "sorted(os.listdir())"),
        ("send", "external", "len(input.text)"),
    )
    files = {"harness/default/harness.py": HARNESS.encode()}
    for name, effect, value in tools:
        source = TOOL.format(name=name, effect=effect, value=value)
        files[f"skill/test-kit/tools/{name}.py"] = source.encode()
    Registry(home.registry).commit(files, "For a test", "edit")
    effects = (Effect.PURE, Effect.READ, Effect.WRITE, Effect.EXTERNAL)
    free = replace(make_task("double", n=1), call=None, goal="go on", effects=effects, limits=Limits())

    def add() -> Task:
        made = replace(free, id=new_id("task"))
        ledger.add_task(made, Share.OPEN)
        return made

    return add


@pytest.fixture
def drive(home: Home, tmp_path: Path) -> Callable[[Task], Command]:
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    return lambda task: command_server().start(str(home.root), task.id, env=os.environ, script=script)


def test_killed_at_random_moments_a_run_pays_once_and_acts_once(
    home: Home,
    ledger: Ledger,
    new_task: Callable[[], Task],
    drive: Callable[[Task], Command],
    server: ModelServer,
    until: Any,
    sandbox: Bubblewrap,
) -> None:
    dice = random.Random(11)
    for begun in range(0, KILLS, AT_ONCE):
        task, paid, kills = new_task(), server.paid, min(AT_ONCE, KILLS - begun)
        for _ in range(kills):
            before, known = server.paid, len(ledger.runs(task.id))
            driver = drive(task)
            # what the one before it asked may be paid only now: that alone is no sign of this one
            until(lambda: len(ledger.runs(task.id)) > known, "it begins", 60)  # noqa: B023 - called here
            until(lambda: server.paid > before or driver.poll() is not None, "it asks", 60)  # noqa: B023 - called here
            time.sleep(dice.uniform(0.0, 0.25))  # the point of the kill, not a wait
            driver.kill()
            driver.wait()
        assert drive(task).wait(PATIENCE_S) == 0
        assert server.paid - paid == TURNS
        acted_once(ledger, task, kills)
    replayed(home, ledger, task, sandbox)
    assert server.paid - paid == TURNS


def acted_once(ledger: Ledger, task: Task, kills: int) -> None:
    assert ledger.task_view(task.id).state is TaskState.DONE
    newest, *lost = ledger.runs(task.id)
    assert newest.outcome is not None
    assert newest.outcome.result is Result.PASSED, newest.outcome
    assert [run.outcome.result for run in lost if run.outcome] == [Result.INFRA] * kills
    # each answer is another number, so none was paid for twice and given once
    answers = [item for item in newest.answer if item.startswith("answer")]
    assert len(set(answers)) == TURNS
    # no outside effect was let happen twice, though some may be uncertain
    begun = [
        (step.action["args"]["text"], step.action["number"])
        for run in (newest, *lost)
        for step in ledger.steps(run.id)
        if step.node == "external"
    ]
    assert len(begun) == len(set(begun)) == TURNS
    assert sum(item == "uncertain" for item in newest.answer) <= kills
    assert {kept.path for kept in newest.outputs} == {f"file{turn}" for turn in range(TURNS)}


def replayed(home: Home, ledger: Ledger, task: Task, sandbox: Bubblewrap) -> None:
    """The run that went on is itself a whole record: a trial of it asks nobody, and so does its own replay."""
    run = ledger.runs(task.id)[0]
    steps = whole(ledger.blobs, ledger.steps(run.id))
    models = GatewayModels(home, load_settings(home.settings), socket_name="replay.sock")
    answerers = {"model": model_asks(models, lambda asking: (SPEC,)), "tool": ToolAsks}
    serving = RunServices(models=lambda bundle, snapshot: (SPEC,), answerers=answerers)
    executor = BoxExecutor(Registry(home.registry), ledger.blobs, sandbox, serving=serving)
    try:
        for mode, source in ((Mode.REPLAY_THEN_LIVE, run.id), (Mode.REPLAY, "trial-1")):
            recording = recording_of(run.snapshot, [(source, steps)])
            plan = Plan(mode=mode, recording=recording, evolution_id="evo-1")
            done = executor.execute(task, run.snapshot, "trial-1", plan=plan)
            assert done.outcome.result is Result.PASSED, done.outcome
            assert told(done.steps) == told(steps)
            assert done.drift == ()
            assert (done.outcome.cost.live_calls, done.outcome.cost.calls) == (0, TURNS)
            steps = list(done.steps)
    finally:
        models.close()
