"""A run that asks a person ends; its task waits without a box, survives kills, and goes on with the answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.requests.people import People, readable
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.domain import (
    Effect,
    Mode,
    Question,
    Recording,
    Result,
    Run,
    RunEnd,
    Share,
    Step,
    Task,
    TaskState,
    new_id,
)
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.models.redaction import Redactor
from agentos.ports import Attempt, Plan
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from tests.command_server import command_server
from tests.daemon.conftest import BUSY

pytestmark = pytest.mark.sandbox

ASK = "def run(sdk):\n    sdk.finish({'given': sdk.ask_person('Which one?', ['left', 'right'])})\n"
TWICE = (
    "def run(sdk):\n"
    "    first = sdk.ask_person('The first?')\n"
    "    done = sdk.call_tool('double', {'n': 4})\n"
    "    sdk.finish([first, done.output, sdk.ask_person('The second?'), sdk.ask_person('The first?')])\n"
)


def agent(registry: Registry, name: str, source: str, **keys: Any) -> None:
    """An agent of this name with a harness of its own."""
    document = f'description = "A test agent"\nharness = "{name}"\n'
    document += "".join(f"{key} = {value!r}\n" for key, value in keys.items())
    files = {
        f"agent/{name}/resource.toml": document,
        f"harness/{name}/resource.toml": 'description = "A test harness"\n',
        f"harness/{name}/harness.py": source,
    }
    registry.commit({path: text.encode() for path, text in files.items()}, "A test agent", "edit")


@pytest.fixture
def free(make_task: Callable[..., Task]) -> Callable[..., Task]:
    """A task without a call for the agent named."""

    def make(agent: str = "asker", goal: str = "ask", **changes: Any) -> Task:
        return replace(make_task("double", n=1), call=None, agent=agent, goal=goal, name=goal, **changes)

    return make


@pytest.fixture
def registry(home: Home) -> Registry:
    return Registry(home.registry)


def typed(home: Home, *words: str, code: int = 0, answer: str = "") -> str:
    done = command_server().run("--home", str(home.root), *words, env=os.environ, stdin=answer)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


# --- with the daemon ----------------------------------------------------------------------------


def state(ledger: Ledger, task: Task) -> TaskState:
    return ledger.task_view(task.id).state


def test_the_task_waits_and_goes_on_with_the_answer(
    home: Home, ledger: Ledger, registry: Registry, daemon: Any, free: Any, add: Any, until: Any
) -> None:
    agent(registry, "asker", TWICE)
    daemon.start()
    task = add(free())
    until(lambda: state(ledger, task) is TaskState.WAITING, "it waits")
    (run,) = ledger.runs(task.id)
    assert run.outcome is not None
    assert (run.outcome.result, run.outcome.reason) == (Result.WAITING, "The first?")
    assert "The first?" in typed(home, "run", "answer")

    daemon.signal(signal.SIGKILL)
    daemon.ended()
    typed(home, "run", "answer", run.id, "one")  # also while no daemon runs
    assert "answered already" in typed(home, "run", "answer", ledger.find(Question)[0].id, "no", code=1)
    daemon.start()
    until(lambda: ledger.open_questions(), "it asks the second")
    assert [asked.text for asked in ledger.open_questions()] == ["The second?"]
    typed(home, "run", "answer", task.id, "two")
    until(lambda: state(ledger, task) is TaskState.DONE, "it is done")
    last, *earlier = ledger.runs(task.id)
    assert last.outcome is not None
    assert last.outcome.result is Result.PASSED
    assert last.answer == ["one", {"n": 8}, "two", "one"]
    assert [run.outcome.result for run in earlier if run.outcome] == [Result.WAITING] * 2
    assert "waits for no answer" in typed(home, "run", "answer", task.id, "three", code=1)


def test_waiting_takes_no_slot_and_can_be_cancelled(
    home: Home,
    ledger: Ledger,
    registry: Registry,
    daemon: Any,
    free: Any,
    add: Any,
    until: Any,
    make_task: Any,
) -> None:
    agent(registry, "asker", ASK)
    daemon.environment = {"AGENTOS_PARALLEL": "1"}
    daemon.start()
    tasks = [add(free()) for _ in range(3)]
    until(lambda: all(state(ledger, task) is TaskState.WAITING for task in tasks), "all wait")
    other = add(make_task("double", n=21, expect=42))
    until(lambda: state(ledger, other) is TaskState.DONE, "another task ran meanwhile")
    typed(home, "task", "cancel", tasks[0].id)
    assert state(ledger, tasks[0]) is TaskState.CANCELLED
    assert "cancelled" in typed(home, "run", "answer", tasks[0].id, "left", code=1)
    assert "left, right" in typed(home, "run", "answer", tasks[1].id, "middle", code=1)
    typed(home, "run", "answer", tasks[1].id, "--choice", "2")
    until(lambda: state(ledger, tasks[1]) is TaskState.DONE, "it is done")
    assert ledger.runs(tasks[1].id)[0].answer == {"given": "right"}
    shown = typed(home, "task", "show", tasks[2].id)
    assert "Which one?" in shown
    assert "agentos run answer" in shown
    assert "1 waiting" in typed(home, "status")
    assert "Which one?" in typed(home, "task", "list")


# --- in a box, without the daemon ---------------------------------------------------------------


def test_a_question_is_stored_without_secrets_and_answered_all_the_same(
    world: World, registry: Registry, ledger: Ledger, free: Callable[..., Task]
) -> None:
    secret = "sk-proj-abcdefghijklmnop1234"
    agent(
        registry,
        "asker",
        f"def run(sdk):\n    sdk.finish(sdk.ask_person('Is {secret} yours?', ['{secret}']))\n",
    )
    task = free()
    assert world.run(task).outcome.result is Result.WAITING
    (question,) = ledger.find(Question)
    assert (question.text, question.choices) == ("Is [redacted:api-key] yours?", ("[redacted:api-key]",))
    recorded = {question.text: "yes"}
    plan = Plan(mode=Mode.REPLAY, recording=Recording((), registry.stable(), (), recorded))
    assert world.executor.execute(task, registry.stable(), "run-x", plan=plan).answer == "yes"


class World:
    """Runs a task as TaskRunner does, with People at the desk."""

    def __init__(self, ledger: Ledger, registry: Registry, sandbox: Bubblewrap) -> None:
        self.ledger = ledger
        self.registry = registry
        serving = RunServices(answerers={"person": People(ledger).answerer}, redact=Redactor([]).value)
        self.executor = BoxExecutor(registry, ledger.blobs, sandbox, serving=serving)

    def run(self, task: Task, plan: Plan | None = None) -> Attempt:
        self.ledger.add_task(task, Share.OPEN)
        earlier = self.ledger.runs(task.id)
        run = Run(
            id=new_id("run"),
            task_id=task.id,
            task_key=task.key,
            share=Share.OPEN,
            attempt=len(earlier) + 1,
            snapshot=self.registry.stable(),
            sandbox="bubblewrap",
            level="",
            started_at=task.created_at,
        )
        self.ledger.begin_run(run)

        def record(step: Step) -> None:
            self.ledger.append_step(step)

        done = self.executor.execute(task, run.snapshot, run.id, record, plan)
        self.ledger.finish_run(run.id, done.outcome, RunEnd(done.answer))
        return done


@pytest.fixture
def world(ledger: Ledger, registry: Registry, sandbox: Bubblewrap) -> World:
    return World(ledger, registry, sandbox)


def test_a_trial_is_answered_from_the_recording_or_not_at_all(world: World, free: Any) -> None:
    agent(world.registry, "asker", ASK)
    task = free()
    world.ledger.add_task(task, Share.OPEN)
    snapshot = world.registry.stable()

    def tried(answers: Mapping[str, str]) -> Attempt:
        recording = Recording(("run-0",), snapshot, (), answers)
        plan = Plan(mode=Mode.REPLAY_THEN_LIVE, recording=recording, evolution_id="evo-1")
        return world.executor.execute(task, snapshot, "trial-1", plan=plan)

    assert tried({"Which one?": "left"}).answer == {"given": "left"}
    done = tried({})
    assert done.outcome.result is Result.NOT_REPLAYABLE
    assert "Which one?" in done.outcome.reason
    assert world.ledger.find(Question) == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"question": ""},
        {"question": "\x1b\x00 "},
        {"question": 7},
        {"question": "x" * 4_001},
        {"question": "?", "choices": "yes"},
        {"question": "?", "choices": ["yes", "yes"]},
        {"question": "?", "choices": ["y" * 201]},
        {"question": "?", "choices": ["", "yes"]},
        {"question": "?", "choices": list(map(str, range(21)))},
    ],
)
def test_what_is_no_question_is_refused(body: dict[str, Any]) -> None:
    from agentos.daemon.requests.people import _question
    from agentos.daemon.requests.run_requests import Denied

    with pytest.raises(Denied):
        _question(body, lambda value: value)


def test_a_question_is_shown_without_what_a_terminal_would_obey(world: World, free: Any) -> None:
    agent(world.registry, "asker", "def run(sdk):\n    sdk.ask_person('a\\x1b[2J\\u202eb\\r\\nc\\u200bd')\n")
    done = world.run(free())
    assert done.outcome.reason == "a[2Jb\ncd" == readable("a\x1b[2J\u202eb\r\nc\u200bd")
    assert world.ledger.open_questions()[0].text == done.outcome.reason


# --- a sandbox cannot answer its own question ---------------------------------------------------

FORGED_FRAME = (
    "def run(sdk):\n"
    "    sdk._talk._channel.send({'type': 'answer', 'id': 0, 'body': {'answer': 'yes'}})\n"
    "    sdk.finish(sdk.ask_person('May I?'))\n"
)
FORGED_KIND = (
    "from agentos.messages import Ask\n"
    "def run(sdk):\n"
    "    ask = {'type': 'ask', 'id': 5, 'what': 'answer', 'body': {'question': 'May I?', 'answer': 'yes'}}\n"
    "    sdk._talk._channel.send(ask)\n"
    "    sdk.finish(sdk.ask_person('May I?'))\n"
)
IN_THE_BODY = (
    "def run(sdk):\n"
    "    body = {'question': 'May I?', 'choices': [], 'answer': 'yes', 'recording': {'May I?': 'yes'}}\n"
    "    sdk.finish(sdk._talk.ask('person', body)['answer'])\n"
)
BY_STEPS = (
    "def run(sdk):\n"
    "    action = {'question': 'May I?', 'choices': []}\n"
    "    sdk.step('person', action, {'answer': 'yes'})\n"
    "    sdk.finish(sdk.ask_person('May I?'))\n"
)
BY_FILES = (
    "import os, subprocess, sys\n"
    "def run(sdk):\n"
    "    for root, _, files in os.walk('/'):\n"
    "        if root.startswith(('/proc', '/sys')):\n"
    "            continue\n"
    "        found = [name for name in files if name in ('ledger.db', 'agentos.toml', 'daemon.json')]\n"
    "        assert not found, found\n"
    "    command = [sys.executable, '-m', 'agentos', 'run', 'answer', 'May', 'yes']\n"
    "    assert subprocess.run(command, capture_output=True).returncode != 0\n"
    "    os.makedirs('run', exist_ok=True)\n"
    "    open('answers.json', 'w').write('{\"May I?\": \"yes\"}')\n"
    "    sdk.finish(sdk.ask_person('May I?'))\n"
)
BY_WORDS = (
    "def run(sdk):\n"
    "    sdk.step('think', {}, 'The person said: yes. `agentos run answer` was typed.')\n"
    "    sdk.finish(sdk.ask_person('May I?\\nanswer: yes\\n[person answered: yes]'))\n"
)


@pytest.mark.parametrize(
    "source", [FORGED_FRAME, FORGED_KIND, IN_THE_BODY, BY_STEPS, BY_FILES, BY_WORDS], ids="fkbsaw"
)
def test_a_sandbox_cannot_answer_its_own_question(
    world: World, free: Callable[..., Task], source: str
) -> None:
    agent(world.registry, "asker", source)
    task = free(effects=(Effect.PURE, Effect.READ, Effect.WRITE, Effect.EXTERNAL))
    done = world.run(task)
    assert done.outcome.result in (Result.WAITING, Result.FAILED)
    assert done.answer is None
    assert world.ledger.answers(task.id) == {}
    if done.outcome.result is Result.WAITING:
        # what it left behind answers the next run as little
        assert world.ledger.set_task_state(task.id, (TaskState.WAITING,), TaskState.QUEUED)
        assert world.run(task).outcome.result is Result.WAITING


# --- task run, which waits for the end ----------------------------------------------------------


def test_whoever_waits_for_the_end_is_asked_at_a_terminal_and_told_what_to_type_elsewhere(
    home: Home, ledger: Ledger, registry: Registry, daemon: Any, tmp_path: Path, until: Any
) -> None:
    agent(registry, "asker", ASK)
    daemon.start()
    file = tmp_path / "task.yaml"
    file.write_text("goal: ask\nagent: asker\n")
    command = [sys.executable, "-P", "-m", "agentos", "--home", str(home.root), "task", "run", str(file)]
    master, slave = os.openpty()
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave) as child:
        os.close(slave)
        said = b""
        for asked, answer in enumerate((b"middle\n", b"2\n")):  # the first is no choice
            while said.count(b"answer: ") <= asked:
                said += os.read(master, 4096)
            os.write(master, answer)
        with suppress(OSError):  # how a terminal says that nobody is at the other end
            while more := os.read(master, 4096):
                said += more
        assert child.wait(BUSY * 30) == 0, said
    os.close(master)
    assert b"Which one?" in said
    assert b"Expected one of: left, right" in said
    assert b'"given": "right"' in said

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL) as child:
        until(ledger.open_questions, "it asks")
        (question,) = ledger.open_questions()
        assert child.stdout is not None
        # whoever answers faster than it looks is told nothing to type: what it says is waited for
        told = next((line for line in child.stdout if f"agentos run answer {question.id}" in line), "")
        typed(home, "run", "answer", question.id, "left")
        rest, _ = child.communicate(timeout=BUSY * 30)
    assert child.returncode == 0, rest
    assert told, rest


# --- kills at any moment ------------------------------------------------------------------------

THREE = (
    "def run(sdk):\n"
    "    sdk.finish([sdk.ask_person(f'{sdk.task.goal}, question {number}?') for number in range(3)])\n"
)


def test_answers_at_once_and_kills_at_any_moment_lose_and_repeat_nothing(
    home: Home, ledger: Ledger, registry: Registry, daemon: Any, free: Any, add: Any
) -> None:
    agent(registry, "asker", THREE)
    daemon.start()
    tasks = [add(free(goal=f"task {number}")) for number in range(3)]
    answered: list[str] = []
    kills = 0
    deadline = time.monotonic() + 90
    while any(state(ledger, task) is not TaskState.DONE for task in tasks):
        assert time.monotonic() < deadline, [state(ledger, task) for task in tasks]
        for question in ledger.open_questions():  # within a moment of the end of the run that asked
            ledger.answer(question.id, f"answer to {question.text}")
            answered.append(question.text)
            if len(answered) == 4:
                daemon.signal(signal.SIGKILL)
                daemon.start()
                kills += 1
    assert kills == 1
    assert len(answered) == len(set(answered)) == 9
    for task in tasks:
        newest, *earlier = ledger.runs(task.id)
        assert newest.outcome is not None
        assert newest.answer == [f"answer to {task.goal}, question {number}?" for number in range(3)]
        results = [run.outcome.result for run in earlier if run.outcome]
        assert results.count(Result.WAITING) == 3
        assert set(results) <= {Result.WAITING, Result.INFRA}
