"""Tool calls of a run that is served from a record: what is made again, what is not, and what ends it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agentos.daemon.requests.model_requests import model_asks
from agentos.daemon.requests.run_requests import ToolAsks
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.daemon.run.tasks import StopSignal, TaskRunner
from agentos.domain import (
    Effect,
    Fault,
    Json,
    Mode,
    ModelSpec,
    Recording,
    Reply,
    Result,
    Share,
    Snapshot,
    Step,
    Task,
    digest,
)
from agentos.domain import new_id as fresh
from agentos.errors import ModelFailed
from agentos.evolver.history.recordings import asks, packed, recording_of, told, unpacked, whole
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.ports import Attempt, Grant, Plan
from agentos.registry.store import Registry
from agentos.resources.declarations import declared
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap

pytestmark = pytest.mark.sandbox

SPEC = ModelSpec("fake", "openai/fake", "", {})
TOOL = '''"""{name}."""
import os, random
from pydantic import BaseModel
TOOL = {{"name": "{name}", "description": "for a test", "effects": {effects}{more}}}
class Input(BaseModel):
    text: str = ""
class Output(BaseModel):
    text: str
def run(input: Input) -> Output:
{body}
'''
FOLDER = "skill/test-kit/tools"


def tool(name: str, effects: str, *body: str, more: str = "") -> dict[str, bytes]:
    lines = "".join(f"    {line}\n" for line in body)
    return {f"{FOLDER}/{name}.py": TOOL.format(name=name, effects=effects, body=lines, more=more).encode()}


DICE = "return Output(text=input.text + str(random.random()))"
TOOLS = {
    **tool("echo", "['pure']", "return Output(text=input.text)"),
    **tool("dice", "['pure']", DICE),
    **tool("look", "['read']", "return Output(text=' '.join(sorted(os.listdir('.'))))"),
    **tool("note", "['write']", "open(input.text, 'a').write('x')", DICE),
    **tool("send", "['external']", "print('sent')", DICE),
    **tool("again", "['external']", DICE, more=", 'idempotent': True"),
    **tool("hang", "['external']", "import time", "time.sleep(600)", DICE),
}
ALL = (Effect.PURE, Effect.READ, Effect.WRITE, Effect.EXTERNAL)


class Models:
    """Implements ports.Models with a record in memory: the n-th equal call gets the n-th answer."""

    def __init__(self) -> None:
        self.record: dict[tuple[str, str, int], Json] = {}
        self.live = 0

    def open(self, grant: Grant) -> Session:
        return Session(self, grant)

    def close(self) -> None: ...


class Session:
    def __init__(self, models: Models, grant: Grant) -> None:
        self._models, self._grant = models, grant
        self._asked: dict[str, int] = {}
        self._lock = threading.Lock()

    def complete(self, request: Json, deadline: float) -> Reply:
        key = digest(request)
        with self._lock:
            number = self._asked.get(key, 0)
            self._asked[key] = number + 1
            own = self._grant.run_id
            found = next(
                (
                    self._models.record[run, key, number]
                    for run in (own, *self._grant.recordings)
                    if (run, key, number) in self._models.record
                ),
                None,
            )
            if found is None:
                if self._grant.mode is Mode.REPLAY:
                    raise ModelFailed("not_recorded", "this call was never recorded")
                self._models.live += 1
                message = {"role": "assistant", "content": f"live {self._models.live}"}
                body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
                self._models.record[own, key, number] = body
                return Reply(f"call-{self._models.live}", body, 10, 5, 0.1, 1.0, recorded=False, model="fake")
        self._models.record[own, key, number] = found
        return Reply("served", found, 10, 5, 0.0, 1.0, recorded=True, model="fake")

    def close(self) -> None: ...


def harness(*calls: str, models: int = 1) -> str:
    """Calls the tools in turn (``name:text``); before each, tells a model all it saw so far."""
    return (
        "def run(sdk):\n"
        "    seen = []\n"
        f"    for call in {list(calls)!r}:\n"
        f"        for _ in range({models}):\n"
        "            reply = sdk.model({'messages': [{'role': 'user', 'content': repr(seen)}]})\n"
        "            seen.append(reply['choices'][0]['message']['content'])\n"
        "        name, _, text = call.partition(':')\n"
        "        result = sdk.call_tool(name, {'text': text})\n"
        "        output = result.output and result.output['text']\n"
        "        seen.append([call, output, result.fault and result.fault.type])\n"
        "    sdk.finish(seen)\n"
    )


class World:
    def __init__(self, home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Any) -> None:
        self.registry = Registry(home.registry)
        self.ledger = ledger
        self.models = Models()
        self.sandbox = sandbox
        self.task: Task = replace(
            make_task("double", n=1), call=None, goal="try tools", id=fresh("task"), effects=ALL
        )
        serving = RunServices(
            models=lambda bundle, snapshot: (SPEC,),
            answerers={"model": model_asks(self.models, lambda asking: (SPEC,)), "tool": ToolAsks},
        )
        self.executor = BoxExecutor(self.registry, ledger.blobs, sandbox, serving=serving)
        self.write(TOOLS)

    def write(self, files: Mapping[str, bytes]) -> Snapshot:
        self.registry.commit(dict(files), "For a test", "edit")
        return self.registry.stable()

    def harness(self, *calls: str, models: int = 1) -> Snapshot:
        return self.write({"harness/default/harness.py": harness(*calls, models=models).encode()})

    def run(self, plan: Plan | None = None, run_id: str = "run-1", effects: Any = ALL) -> Attempt:
        task = replace(self.task, effects=effects)
        return self.executor.execute(task, self.registry.stable(), run_id, plan=plan)

    def recorded(self, done: Attempt, *, on: Snapshot | None = None) -> Recording:
        return recording_of(on or self.registry.stable(), [("run-1", done.steps)])


@pytest.fixture
def world(home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Any) -> World:
    return World(home, ledger, sandbox, make_task)


def trial(recording: Recording | None, mode: Mode = Mode.REPLAY) -> Plan:
    return Plan(mode=mode, recording=recording, evolution_id="evo-1")


def outputs(done: Attempt) -> list[str | None]:
    return [item[1] for item in done.answer if isinstance(item, list)]


def faults(done: Attempt) -> list[str | None]:
    return [item[2] for item in done.answer if isinstance(item, list)]


def test_a_replay_of_an_unchanged_snapshot_is_the_same_byte_for_byte(world: World) -> None:
    world.harness("echo:a", "look", "note:f", "echo:b", "look", "send:x", "send:x", "echo:a", models=2)
    # what it notes is random, so the world has to be one whose random things are on record
    world.write(tool("note", "['write']", "open(input.text, 'a').write('x')", "return Output(text='ok')"))
    world.write(tool("send", "['external']", "print('sent')", "return Output(text='ok')"))
    live = world.run()
    assert world.models.live == 16
    assert live.outcome.result is Result.PASSED
    again = world.run(trial(world.recorded(live)), "trial-1")
    assert world.models.live == 16
    assert again.answer_sha256 == live.answer_sha256
    assert told(again.steps) == told(live.steps)
    assert packed(again.steps) != packed(live.steps)  # times
    assert again.drift == ()
    assert (again.outcome.cost.live_calls, again.outcome.cost.usd) == (0, 0.0)
    third = world.run(trial(recording_of(world.registry.stable(), [("trial-1", again.steps)])), "trial-2")
    assert told(third.steps) == told(live.steps)  # a trial is as good a record as the run was


def test_a_trajectory_is_packed_and_unpacked_whole(world: World) -> None:
    world.harness("echo:a", "nothing_of_this_name", "send:x")
    steps = list(world.run().steps)
    assert unpacked(packed(steps)) == steps
    assert asks(steps)
    assert not asks([step for step in steps if step.node == "act"])


def test_in_a_trial_the_code_of_a_tool_that_acts_outside_is_run(world: World) -> None:
    """An edit that breaks it would otherwise be behind the recorded result (the requests: test_egress)."""
    world.harness("send:x")
    live = world.run()
    recording = world.recorded(live)
    world.write(tool("send", "['external']", "raise OSError('broken by the edit')"))
    again = world.run(trial(recording), "trial-1")
    assert faults(again) == ["OSError"]
    assert f"{FOLDER}/send.py" in " ".join(again.reached)


def test_requests_that_were_recorded_without_their_answers_leave_the_recorded_result(world: World) -> None:
    """As earlier versions recorded them: then the call is served, and its code does not run."""
    world.harness("send:x", "send:x")
    live = world.run()
    old = Step(
        "run-1",
        99,
        "fetch",
        {"method": "GET", "url": "http://x/"},
        {"status": 200},
        None,
        datetime.now(UTC),
        1.0,
    )
    recording = recording_of(world.registry.stable(), [("run-1", [*live.steps, old])])
    again = world.run(trial(recording), "trial-1")
    assert outputs(again) == outputs(live)
    acts = [step.observation for step in again.steps if step.node == "act"]
    assert all(seen["recorded"] and seen["stdout"]["head"] == "sent\n" for seen in acts)
    assert not [step for step in again.steps if step.node == "external"]
    assert not [label for label in again.reached if "send" in label]


@pytest.mark.parametrize("mode", list(Mode))
def test_an_outside_effect_that_is_not_on_record_ends_a_trial(world: World, mode: Mode) -> None:
    """In every mode: also where models may be asked live, and where there is no recording at all."""
    world.harness("send:x")
    live = world.run()
    world.harness("send:x", "send:other")
    for recording in (world.recorded(live), None):
        models = replace(recording, run_ids=("run-1",)) if recording else None
        done = world.run(trial(models, Mode.LIVE if mode is Mode.REPLAY else mode), f"trial-{mode}")
        assert done.outcome.result is Result.NOT_REPLAYABLE
        assert "'send'" in done.outcome.reason


def test_a_trial_cannot_get_out_by_another_name_for_the_tool(world: World) -> None:
    world.harness("send:x")
    live = world.run()
    world.harness("test-kit/send:x")
    done = world.run(trial(world.recorded(live), Mode.RECORD), "trial-1")
    assert done.outcome.result is Result.NOT_REPLAYABLE


def test_live_outside_effects_need_the_tasks_permission(world: World) -> None:
    world.harness("send:x")
    done = world.run(effects=(Effect.PURE,))
    assert faults(done) == ["effect"]
    assert not [step for step in done.steps if step.node == "external"]


def test_the_kernel_reads_effects_itself(world: World) -> None:
    """A worker that says nothing of the effect, or names another path, is not believed."""
    world.write(
        {
            "harness/default/harness.py": (
                b"from agentos.worker.sdk import Refused\n"
                b"def run(sdk):\n"
                b"    body = {'tool': 'send', 'args': {}, 'path': 'skill/test-kit/tools/echo.py'}\n"
                b"    found = []\n"
                b"    for change in ({}, {'args': 7}, {'tool': 'none'}, {'tool': ['x']}):\n"
                b"        try:\n"
                b"            found.append(sdk._talk.ask('tool', {**body, **change}))\n"
                b"        except Refused as error:\n"
                b"            found.append(error.fault.type)\n"
                b"    sdk.finish(found)\n"
            )
        }
    )
    done = world.run(effects=(Effect.PURE,))
    assert done.answer == ["effect", "request", "unknown_tool", "request"]
    assert world.run(trial(None), "trial-1").outcome.result is Result.NOT_REPLAYABLE


@pytest.mark.parametrize("node", ["external", "model"])
def test_a_worker_cannot_record_what_the_kernel_saw(world: World, node: str) -> None:
    source = f"def run(sdk):\n    sdk.step({node!r}, {{}})\n    sdk.finish('recorded')\n"
    world.write({"harness/default/harness.py": source.encode()})
    done = world.run()
    assert done.outcome.result is Result.FAILED
    assert "for the kernel alone" in done.outcome.reason
    assert done.steps == ()


def test_what_comes_out_differently_is_drift_once_for_each_tool(world: World) -> None:
    world.harness("dice:a", "dice:b", "echo:x", "note:f", "look")
    live = world.run()
    again = world.run(trial(world.recorded(live), Mode.REPLAY_THEN_LIVE), "trial-1")
    assert again.drift == (
        "test-kit/dice (pure) gave another result than the one on record",
    )  # what only writes answers what it likes


def test_what_an_edit_changed_is_no_drift(world: World) -> None:
    world.harness("echo:x", "look")
    recorded = world.recorded(world.run(), on=world.registry.stable())
    world.write(tool("echo", "['pure']", "open('left', 'w')", "return Output(text='changed')"))
    again = world.run(trial(recorded, Mode.REPLAY_THEN_LIVE), "trial-1")
    assert outputs(again) == ["changed", "left"]  # `look` sees what the edit did
    assert again.drift == ()


def resumed(world: World, *runs: tuple[str, Attempt | list[Step]]) -> Plan:
    histories = [(name, done.steps if isinstance(done, Attempt) else done) for name, done in runs]
    return Plan(recording=recording_of(world.registry.stable(), histories), resume=True)


def cut(done: Attempt, node: str, number: int) -> list[Step]:
    """The trajectory up to just before the ``number``-th step of this node: there it was killed."""
    at = [step.index for step in done.steps if step.node == node][number]
    return list(done.steps[:at])


def test_a_resumed_run_pays_for_nothing_twice_and_does_nothing_twice(world: World) -> None:
    world.harness("dice:a", "send:x", "note:f", "look", "dice:b")
    first = world.run()
    killed = cut(first, "act", 4)  # the last call was under way
    live = world.models.live
    again = world.run(resumed(world, ("run-1", killed)), "run-2")
    assert world.models.live == live
    assert outputs(again)[:4] == outputs(first)[:4]  # also of what gives another result each time
    assert outputs(again)[4] != outputs(first)[4]
    assert again.files.keys() == {"f"}  # the workspace is there again
    assert not [step for step in again.steps if step.node == "external"]
    assert again.drift == ()


def test_the_record_of_several_attempts_is_one(world: World) -> None:
    """The second attempt was killed earlier than the first: what only the first knows is still served."""
    world.harness("dice:a", "dice:a", "send:x", "dice:b")
    first = world.run()
    second = world.run(resumed(world, ("run-1", first)), "run-2")
    plan = resumed(world, ("run-1", cut(first, "act", 3)), ("run-2", cut(second, "act", 1)))
    third = world.run(plan, "run-3")
    assert outputs(third)[:3] == outputs(first)[:3]


def test_a_call_cut_between_effect_and_record_is_told_as_uncertain(world: World) -> None:
    world.harness("send:x", "send:x")
    first = world.run()
    killed = cut(first, "act", 1)
    assert killed[-1].node == "external"
    again = world.run(resumed(world, ("run-1", killed)), "run-2")
    assert faults(again) == [None, "uncertain"]
    assert outputs(again)[0] == outputs(first)[0]
    assert not [step for step in again.steps if step.node == "external"]
    # killed once more, after it was told so: it is told so again
    third = world.run(resumed(world, ("run-1", killed), ("run-2", again)), "run-3")
    assert third.answer == again.answer


def test_a_tool_that_declares_itself_idempotent_is_called_again(world: World) -> None:
    world.harness("again:x")
    killed = cut(world.run(), "act", 0)
    again = world.run(resumed(world, ("run-1", killed)), "run-2")
    assert faults(again) == [None]
    assert [step.node for step in again.steps if step.node == "external"] == ["external"]
    done = world.run(resumed(world, ("run-1", killed), ("run-2", again)), "run-3")
    assert outputs(done) == outputs(again)  # once it has a result, that is served


def test_a_call_with_a_secret_in_its_arguments_is_found_again(world: World) -> None:
    """It stands on record without the secret, and is neither made again nor lost."""
    answerers = {"model": model_asks(world.models, lambda asking: (SPEC,)), "tool": ToolAsks}

    def redact(value: Json) -> Json:
        return json.loads(json.dumps(value).replace("sesame", "[redacted]"))

    world.executor = BoxExecutor(
        world.registry,
        world.ledger.blobs,
        world.sandbox,
        serving=RunServices(models=lambda bundle, snapshot: (SPEC,), answerers=answerers, redact=redact),
    )
    world.harness("send:sesame", "send:sesame")
    first = world.run()
    assert "sesame" not in packed(first.steps).decode()
    again = world.run(resumed(world, ("run-1", cut(first, "act", 1))), "run-2")
    assert faults(again) == [None, "uncertain"]
    assert not [step for step in again.steps if step.node == "external"]


def test_in_a_trial_an_uncertain_call_is_not_on_record(world: World) -> None:
    world.harness("again:x")
    killed = cut(world.run(), "act", 0)
    recording = recording_of(world.registry.stable(), [("run-1", killed)])
    assert world.run(trial(recording), "trial-1").outcome.result is Result.NOT_REPLAYABLE


def test_where_the_repeated_write_fails_the_truth_is_told(world: World) -> None:
    world.harness("note:f")
    first = world.run()
    world.write(tool("note", "['write']", "raise OSError('no room')"))
    again = world.run(resumed(world, ("run-1", first)), "run-2")
    assert faults(again) == ["OSError"]


def test_forged_steps_make_no_endless_record() -> None:
    """A step is the word of a worker: numbers that are none, or beyond reason, count for nothing."""
    made: list[Step] = []
    for number in (10**12, -1, True, "7", None, 2):
        action: Json = {"tool": "send", "args": {}, "path": "p", "number": number}
        made.append(Step("run-1", len(made), "external", action, None, None, datetime.now(UTC), 0.0))
    made.append(Step("run-1", 9, "external", "no call", None, None, datetime.now(UTC), 0.0))
    made.append(Step("run-1", 10, "act", {"tool": "x"}, 7, Fault("a", "b"), datetime.now(UTC), 0.0))
    recording = recording_of(Snapshot("a", "b"), [("run-1", made)])
    assert len(recording.tools) == 3


def test_what_the_ledger_put_away_is_brought_back(ledger: Ledger) -> None:
    large = "x" * 20_000
    kept = ledger.blobs.shrink({"output": large})
    step = Step("run-1", 0, "act", {"tool": "t"}, kept, None, datetime.now(UTC), 0.0)
    (found,) = whole(ledger.blobs, [step])
    assert found.observation == {"output": large}


@pytest.mark.parametrize(
    ("source", "effects", "idempotent"),
    [
        ("TOOL = {'effects': ['pure']}", {"pure"}, False),
        ("TOOL = {'effects': ['external'], 'idempotent': True}", {"external"}, True),
        ("TOOL = {'effects': ['external']}\nTOOL: dict = {'effects': ['pure']}", {"external", "pure"}, False),
        ("TOOL = dict(effects=['pure'])", {"external"}, False),
        ("TOOL = {'effects': []}", {"external"}, False),
        ("TOOL = {'effects': 7}", {"external"}, False),
        ("TOOL = [1]", {"external"}, False),
        ("not python (", {"external"}, False),
        ("x = 1", {"external"}, False),
        ("\x00", {"external"}, False),
    ],
)
def test_what_cannot_be_read_counts_as_acting_on_the_outside(
    source: str, effects: set[str], idempotent: bool
) -> None:
    says = declared("skill/x/tools/t.py", source.encode())
    assert says.effects == effects
    assert says.idempotent is idempotent


# --- killed between the effect and its record -----------------------------------------------------

# A daemon's share in a run, in a process that can be killed.
DRIVER = """
import sys
from datetime import UTC, datetime
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.daemon.requests.run_requests import ToolAsks
from agentos.daemon.run.tasks import StopSignal, TaskRunner
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.settings import load_settings

home = Home.find(sys.argv[1])
ledger, registry = Ledger(home.ledger), Registry(home.registry)
with Bubblewrap(home.root, load_settings(home.settings).run_uid) as sandbox:
    executor = BoxExecutor(registry, ledger.blobs, sandbox, serving=RunServices(answerers={"tool": ToolAsks}))
    TaskRunner(ledger, registry, executor, StopSignal()).attempt(sys.argv[2], datetime.now(UTC))
"""
ONE_CALL = "def run(sdk):\n    result = sdk.call_tool('{0}', {{'text': 'x'}})\n    sdk.finish(result.fault and result.fault.type)\n"


# Dies as soon as a call may be made: whether its effect came about, nobody can say.
SUICIDE = (
    "import os\n"
    "def doomed(ask):\n"
    "    def asked(what, body):\n"
    "        answer = ask(what, body)\n"
    "        if answer.get('go'):\n"
    "            os._exit(1)\n"
    "        return answer\n"
    "    return asked\n"
)


def one_call(world: World, name: str, *, dies: bool = False) -> TaskRunner:
    source = ONE_CALL.format(name)
    if dies:
        source = SUICIDE + source.replace("(sdk):\n", "(sdk):\n    sdk._talk.ask = doomed(sdk._talk.ask)\n")
    world.write({"harness/default/harness.py": source.encode()})
    world.ledger.add_task(world.task, Share.OPEN)
    return TaskRunner(world.ledger, world.registry, world.executor, StopSignal())


def began(world: World) -> int:
    """How many calls with outside effects the kernel let happen, in all runs of the task."""
    runs = world.ledger.runs(world.task.id)
    return sum(step.node == "external" for run in runs for step in world.ledger.steps(run.id))


def test_a_worker_killed_between_effect_and_record_does_not_do_it_twice(world: World) -> None:
    runner = one_call(world, "send", dies=True)
    assert not runner.attempt(world.task.id, datetime.now(UTC))
    assert began(world) == 1
    assert runner.attempt(world.task.id, datetime.now(UTC))
    newest = world.ledger.runs(world.task.id)[0]
    assert newest.answer == "uncertain"
    assert began(world) == 1


def test_what_declares_itself_idempotent_is_tried_as_often_as_a_task_is(world: World) -> None:
    runner = one_call(world, "again", dies=True)
    while not runner.attempt(world.task.id, datetime.now(UTC)):
        pass
    assert began(world) == 3


def test_a_daemon_killed_between_effect_and_record_does_not_do_it_twice(
    world: World, home: Home, until: Any
) -> None:
    runner = one_call(world, "hang")
    command = [sys.executable, "-P", "-c", DRIVER, str(home.root), world.task.id]
    with subprocess.Popen(command) as driver:
        until(lambda: began(world) == 1 or driver.poll() is not None, "the call is let happen", 30)
        driver.kill()
    assert runner.attempt(world.task.id, datetime.now(UTC))
    newest, oldest = world.ledger.runs(world.task.id)
    assert (newest.answer, newest.resumes) == ("uncertain", oldest.id)
    assert began(world) == 1


def test_what_is_recorded_of_an_announced_call_is_as_large_as_an_action_may_be(world: World) -> None:
    """Ten thousand asks of eight mebibytes each would be kept for ever."""
    source = (
        "from agentos.worker.sdk import Refused\n"
        "def run(sdk):\n"
        "    try:\n"
        "        sdk._talk.ask('tool', {'tool': 'send', 'args': {'x': 'y' * (2 << 20)}})\n"
        "    except Refused as error:\n"
        "        sdk.finish(error.fault.type)\n"
    )
    world.write({"harness/default/harness.py": source.encode()})
    done = world.run()
    assert (done.answer, done.steps) == ("limit", ())
