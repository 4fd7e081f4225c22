"""Any agent program as an agent: its model calls become steps, its end the run's, its box its world."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.requests.model_requests import model_asks
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.domain import Json, Limits, ModelSpec, Result, Task, new_id
from agentos.errors import ModelFailed
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.ports import Attempt
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.testing import FakeModels

pytestmark = pytest.mark.sandbox

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "black-box"
SPEC = ModelSpec("house-model", "openai/fake", "", {})


def shell(command: str) -> Mapping[str, Json]:
    function = {"name": "shell", "arguments": json.dumps({"command": command})}
    return {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}


class World:
    def __init__(self, home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Any) -> None:
        self.registry = Registry(home.registry)
        self.ledger = ledger
        self.sandbox = sandbox
        made: Task = make_task("double", n=1)
        self.task = replace(made, call=None, goal="count the lines", agent="mini", id=new_id("task"))
        files = {
            str(path.relative_to(EXAMPLE)): path.read_bytes() for path in EXAMPLE.rglob("*") if path.is_file()
        }
        self.registry.commit(
            {path: content for path, content in files.items() if path.split("/")[0] in ("agent", "harness")},
            "The mini-agent",
            "edit",
        )

    def program(self, source: str) -> None:
        """Another program under the same command."""
        self.registry.commit({"harness/mini-agent/agent.py": source.encode()}, "Another program", "edit")

    def run(self, models: FakeModels, limits: Limits | None = None) -> Attempt:
        serving = RunServices(
            models=lambda task, snapshot: (SPEC,),
            answerers={"model": model_asks(models, lambda asking: (SPEC,))},
        )
        executor = BoxExecutor(self.registry, self.ledger.blobs, self.sandbox, serving=serving)
        task = replace(self.task, limits=limits) if limits else self.task
        return executor.execute(task, self.registry.stable(), "run-b")


@pytest.fixture
def world(home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Any) -> World:
    return World(home, ledger, sandbox, make_task)


def silent(request: Mapping[str, Any], number: int) -> Mapping[str, Json]:
    raise AssertionError("nobody was to ask")


def test_the_example_runs_and_its_calls_become_steps(world: World) -> None:
    def model(request: Mapping[str, Any], number: int) -> Mapping[str, Json]:
        if number == 0:
            return shell("printf 'a\\nb\\n' > made.txt; wc -l < made.txt")
        assert "exit 0\n2" in request["messages"][-1]["content"]
        return {"content": "2"}

    models = FakeModels(model)
    done = world.run(models)
    assert (done.outcome.result, done.answer) == (Result.PASSED, 2)
    assert [step.node for step in done.steps] == ["model", "model", "command"]
    assert models.requests[0]["model"] == "house-model"
    assert "count the lines" in models.requests[0]["messages"][1]["content"]
    assert done.files == {"made.txt": b"a\nb\n"}
    assert "harness/mini-agent" in done.resources


def test_a_stream_is_made_from_the_whole_answer(world: World) -> None:
    world.program(
        "import json, os, urllib.request\n"
        "base = os.environ['OPENAI_BASE_URL']\n"
        "body = {'messages': [], 'stream': True, 'stream_options': {'include_usage': True}}\n"
        "data = json.dumps(body).encode()\n"
        "with urllib.request.urlopen(urllib.request.Request(base + '/chat/completions', data)) as answer:\n"
        "    lines = [line[6:] for line in answer.read().decode().splitlines() if line.startswith('data: ')]\n"
        "assert lines.pop() == '[DONE]'\n"
        "chunks = [json.loads(line) for line in lines]\n"
        "models = json.load(urllib.request.urlopen(base + '/models'))\n"
        "text = ''.join(c['delta'].get('content') or '' for chunk in chunks for c in chunk['choices'])\n"
        "print(json.dumps([text, 'usage' in chunks[-1], models['data'][0]['id']]))\n"
    )
    models = FakeModels(lambda request, number: {"content": "streamed"})
    assert world.run(models).answer == ["streamed", True, "house-model"]


def test_an_answer_that_nobody_may_read_is_the_programs_own_fault(world: World) -> None:
    world.program(
        "import os\nplace = os.environ['AGENTOS_TASK'] + '/answer.json'\n"
        "open(place, 'w').write('1')\nos.chmod(place, 0)\n"
    )
    done = world.run(FakeModels(silent))
    fault = done.outcome.fault
    assert fault is not None
    assert (done.outcome.result, fault.type, fault.resource) == (
        Result.FAILED,
        "output",
        "harness/mini-agent",
    )


def test_clients_of_other_protocols_are_understood(world: World) -> None:
    world.program(
        "import json, os, urllib.error, urllib.request\n"
        "base = os.environ['OPENAI_BASE_URL']\n"
        "def post(place, body):\n"
        "    data = json.dumps(body).encode()\n"
        "    try:\n"
        "        with urllib.request.urlopen(urllib.request.Request(base + place, data)) as answer:\n"
        "            return answer.read().decode()\n"
        "    except urllib.error.HTTPError as error:\n"
        "        return [error.code, json.load(error)['error']['type']]\n"
        "said = {'messages': [{'role': 'user', 'content': 'hello'}]}\n"
        "print(json.dumps([\n"
        "    json.loads(post('/messages?beta=true', said))['content'][0]['text'],\n"
        "    json.loads(post('/responses', {'input': 'hello'}))['output'][0]['content'][0]['text'],\n"
        "    [line for line in post('/messages', said | {'stream': True}).splitlines() if 'event:' in line][-1],\n"
        "    [line for line in post('/responses', {'input': 'x', 'stream': True}).splitlines() if 'event:' in line][-1],\n"
        "    post('/messages', {'messages': 3}),\n"
        "    post('/responses', {}),\n"
        "]))\n"
    )
    models = FakeModels(lambda request, number: {"content": f"answer {number}"})
    ends = ["event: message_stop", "event: response.completed"]
    assert world.run(models).answer == ["answer 0", "answer 1", *ends, [400, "request"], [400, "request"]]
    assert [request["messages"][0]["content"] for request in models.requests] == [
        "hello",
        "hello",
        "hello",
        "x",
    ]


@pytest.mark.parametrize(
    ("program", "result", "kind"),
    [
        ("raise SystemExit(3)", Result.FAILED, "exit"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", Result.FAILED, "signal"),
        ("import time; time.sleep(60)", Result.TIMEOUT, "timeout"),
        ("print('x' * 3_000_000)", Result.FAILED, "limit"),
        (
            "import os; open(os.environ['AGENTOS_TASK'] + '/answer.json', 'w').write('{')",
            Result.FAILED,
            "output",
        ),
        ("import os\nwhile True:\n    os.fork()", Result.FAILED, "exit"),  # no process is left
    ],
)
def test_a_program_that_fails_is_told_as_such(world: World, program: str, result: Result, kind: str) -> None:
    world.program(program)
    limits = Limits(wall_s=4.0 if result is Result.TIMEOUT else 60.0)
    done = world.run(FakeModels(silent), limits)
    assert done.outcome.fault is not None
    assert (done.outcome.result, done.outcome.fault.type) == (result, kind)


def test_a_refused_call_is_an_http_error_in_the_program(world: World) -> None:
    def model(request: Mapping[str, Any], number: int) -> Mapping[str, Json]:
        raise ModelFailed("context", "too long for the model")

    world.program(
        "import json, os, urllib.error, urllib.request\n"
        "url = os.environ['OPENAI_BASE_URL'] + '/chat/completions'\n"
        "def status(data):\n"
        "    try:\n"
        "        urllib.request.urlopen(urllib.request.Request(url, data))\n"
        "    except urllib.error.HTTPError as error:\n"
        "        return [error.code, json.load(error)['error']['code']]\n"
        "print(json.dumps([status(b'{}'), status(b'[]'), status(b'{')]))\n"
    )
    refused = [400, "request"]
    assert world.run(FakeModels(model)).answer == [[400, "context"], refused, refused]


def test_a_program_sees_no_key_and_reaches_nobody(world: World) -> None:
    world.program(
        "import json, os, socket\n"
        "def reaches(place):\n"
        "    try:\n"
        "        socket.create_connection(place, 0.5)\n"
        "        return True\n"
        "    except OSError:\n"
        "        return False\n"
        "secrets = [name for name in os.environ if 'KEY' in name or 'TOKEN' in name]\n"
        "print(json.dumps([secrets, os.environ['OPENAI_API_KEY'], reaches(('192.0.2.1', 80))]))\n"
    )
    assert world.run(FakeModels(silent)).answer == [["OPENAI_API_KEY"], "none-needed", False]
