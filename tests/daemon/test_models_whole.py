"""Agents that think, by the commands that a person types: real litellm, real boxes, a real daemon."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentos.domain import Json, KernelFault, Result, Run, Share, Task, TaskState, kind_of
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.testing import ModelServer, call, say
from agentos.testing.modelserver.replies import ServerReply
from tests.daemon.conftest import Daemon, until
from tests.daemon.thinking_world import (
    KEY,
    KEY_ENV,
    free_task,
    results,
    scripted,
    turn_of,
    typed,
    world,
)

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

ALONE = 'evolve = "manual"\n'  # an evolution's trials would be paid calls too
OVERSEEN = """
[supervisor]
overseer_model = "scripted"
overseer = "stop"
overseer_steps = 40
observed = 0.0
"""
SECRET = "Quiet-Harbour-4711-x9"  # looks like no key: only its name tells


def count(file: str) -> Callable[[Json], ServerReply]:
    """Reads with a shipped tool, then says what it gave."""
    return lambda request: (
        say(results(request)[0]) if turn_of(request) else call("word_count", {"path": file})
    )


def leak(*_: str) -> Callable[[Json], ServerReply]:
    """Calls the tool whose output, error and files hold a key, and says it again."""

    def reply(request: Json) -> ServerReply:
        turn = turn_of(request)
        if turn < 2:
            return call("leak", {"text": ("say", "fail")[turn]})
        return say(f"it said {results(request)}, and I know {SECRET} too")

    return reply


def astray(*_: str) -> Callable[[Json], ServerReply]:
    """Ever another call; and what the model says that looks on at it."""

    def reply(request: Json) -> ServerReply:
        if "You watch another agent" in str(request["messages"][0]["content"]):
            return say('So far: {"lost": true, "reason": "ever other letters"}')
        return call("pure", {"text": "ab" * (1 + turn_of(request))})

    return reply


def ask(*_: str) -> Callable[[Json], ServerReply]:
    """Asks a person, then another agent, then answers with what both said."""

    def reply(request: Json) -> ServerReply:
        turn = turn_of(request)
        if turn == 0:
            return call("ask_person", {"question": "Which colour?", "choices": ["red", "blue"]})
        if turn == 1:
            return call("ask_helper", {"goal": "[work 77 2]"})
        return say(json.dumps(results(request)))

    return reply


SCRIPTS = {"count": count, "leak": leak, "astray": astray, "ask": ask}
LEAK = f'''"""leak."""
import sys
from pathlib import Path
from pydantic import BaseModel
TOOL = {{"name": "leak", "description": "leaks", "effects": ["read"]}}
PARTS = {[SECRET[:9], SECRET[9:]]!r}
class Input(BaseModel):
    text: str
class Output(BaseModel):
    text: str
def run(input: Input) -> Output:
    whole = "".join(PARTS)
    print(whole)
    print(whole, file=sys.stderr)
    if input.text == "fail":
        raise ValueError(whole)
    return Output(text=whole)
'''


@dataclass
class Place:
    """A home with a daemon that runs, its model's server, and its ledger."""

    home: Home
    server: ModelServer
    seen: Any
    ledger: Ledger
    daemon: Daemon

    def done(self, *tasks: Task, seconds: float = 60) -> list[Run]:
        """Queue them, wait for their end; the newest run of each."""
        for task in tasks:
            self.ledger.add_task(task, Share.OPEN)
        ended = (TaskState.DONE, TaskState.CANCELLED, TaskState.WAITING)
        until(
            lambda: all(self.ledger.task_view(task.id).state in ended for task in tasks),
            f"done: {[task.name for task in tasks]}",
            seconds,
        )
        return [self.ledger.runs(task.id)[0] for task in tasks]


@pytest.fixture(scope="module")
def place(made_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("models") / "home"
    shutil.copytree(made_home, root)
    home = Home(root)
    home.keys.touch(mode=0o600)
    home.keys.write_text(f'SOME_PASSWORD = "{SECRET}"\n')
    with (
        pytest.MonkeyPatch.context() as patch,
        world(home, scripted(SCRIPTS), settings=ALONE) as (server, seen),
    ):
        patch.setenv(KEY_ENV, KEY)
        files = {"tool/leak/tool.py": LEAK, "tool/leak/resource.toml": 'description = "leaks"\n'}
        files |= {"agent/leaky/resource.toml": 'description = "leaky"\ntools = ["leak"]\nskills = []\n'}
        Registry(home.registry).commit({path: text.encode() for path, text in files.items()}, "More", "edit")
        home.settings.write_text(home.settings.read_text() + OVERSEEN)
        ledger, daemon = Ledger(home.ledger), Daemon(home)
        yield Place(home, server, seen, ledger, daemon.start())
        daemon.close()
        ledger.close()


def ended(run: Run) -> tuple[Result, str]:
    assert run.outcome is not None
    return run.outcome.result, run.outcome.fault.type if run.outcome.fault else ""


def test_a_question_is_answered_without_a_task_file(place: Place, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("hello world\nand all\n")
    words = ("ask", "How many words has the letter? [count letter.txt]", str(tmp_path / "letter.txt"))
    told = typed(place.home, *words)
    assert "word_count" in told  # its steps
    assert '"words": 4' in told
    *steps, end = [json.loads(line) for line in typed(place.home, *words, "--json").splitlines()]
    assert (end["result"], end["answer"]["words"]) == ("passed", 4)
    assert "model" in {step["step"]["node"] for step in steps}


def test_a_task_file_is_thought_about_and_answered(place: Place, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("hello world\nand all\n")
    (tmp_path / "task.yaml").write_text(
        'goal: "How many words has the letter? [count letter.txt]"\n'
        "inputs: [letter.txt]\nchecks:\n  - equals: {path: words, value: 4}\n"
    )
    assert "answered in" in typed(place.home, "model", "test", "scripted")
    paid = place.server.paid
    said = typed(place.home, "task", "run", str(tmp_path / "task.yaml"))
    assert "passed" in said
    assert place.server.paid == paid + 2
    (found,) = json.loads(typed(place.home, "run", "list", "--limit", "1", "--json"))
    shown = typed(place.home, "run", "show", found["id"])
    assert "word_count" in shown
    assert "2 model calls" in shown
    assert "tokens" in shown
    assert "USD" in shown
    cost = found["outcome"]["cost"]
    assert (cost["calls"], cost["live_calls"]) == (2, 2)
    assert cost["usd"] > 0
    (line,) = json.loads(typed(place.home, "model", "list", "--json"))
    assert line["calls"] >= 3


def test_equal_calls_of_runs_side_by_side_are_each_paid_once(place: Place) -> None:
    paid = place.server.paid
    runs = place.done(*(free_task("[work 5 2]") for _ in range(3)))
    assert [ended(run)[0] for run in runs] == [Result.PASSED] * 3
    assert place.server.paid == paid + 9
    assert place.seen["/5-0"] == 3


def test_a_key_that_a_tool_gives_away_is_nowhere(place: Place) -> None:
    before = len(place.server.requests)
    (run,) = place.done(free_task("[leak]", agent="leaky"))
    assert ended(run)[0] is Result.PASSED
    assert "[redacted:SOME_PASSWORD]" in run.answer
    sent = [json.dumps(request.body) for request in place.server.requests[before:]]
    assert any("[redacted:SOME_PASSWORD]" in one for one in sent)
    assert not [one for one in sent if SECRET in one]
    exported = place.home.root / "exported.jsonl"
    typed(place.home, "trajectory", "export", run.id, "--format", "openai-chat", "--output", str(exported))
    assert exported.stat().st_size
    for secret in (SECRET, KEY):
        # by another process: closing a file of a database here would drop the locks that we hold on it
        found = subprocess.run(
            ["grep", "-rlaF", secret, place.home.root], capture_output=True, text=True, check=False
        )
        assert set(found.stdout.split()) <= {str(place.home.keys)}


def test_a_model_that_looks_on_ends_what_it_calls_lost_and_is_paid_for(place: Place) -> None:
    paid = place.server.paid
    (run,) = place.done(free_task("[astray]"))
    assert run.outcome is not None
    assert kind_of(run.outcome.fault) is KernelFault.SUPERVISOR
    steps = place.ledger.steps(run.id)
    assert [step.action for step in steps if step.node == "supervisor"] == [
        {"check": "overseer", "act": "stop"}
    ]
    assert "ever other letters" in run.outcome.reason
    own = sum(step.node == "model" for step in steps)
    assert place.server.paid - paid == own + 1  # its look is a call of its own, on a budget of its own
    assert run.outcome.cost.calls == own


def test_a_storm_of_refusals_is_waited_out_and_nothing_is_paid_twice(place: Place) -> None:
    paid = place.server.paid
    place.server.fault_next("rate_limit", times=6, retry_after_s=0.2)
    runs = place.done(*(free_task(f"[work {number} 2]") for number in (41, 42, 43)))
    assert [ended(run)[0] for run in runs] == [Result.PASSED] * 3
    assert place.server.paid == paid + 9


@pytest.mark.parametrize("kind", ["no_choices", "reset"])
def test_a_spoilt_answer_in_the_middle_is_paid_once(place: Place, kind: str) -> None:
    paid = place.server.paid
    place.server.fault_next(kind)
    (run,) = place.done(free_task(f"[work {100 + len(kind)}{kind[0]} 1]"))
    assert ended(run)[0] is Result.PASSED, (run.outcome, place.server.stats())
    assert place.server.paid - paid == (3 if kind == "no_choices" else 2)


def test_people_and_other_agents_are_asked_once_across_deaths(place: Place) -> None:
    paid = place.server.paid
    (run,) = place.done(free_task("[ask]"))
    assert ended(run)[0] is Result.WAITING
    assert place.server.paid == paid + 1
    place.daemon.child.kill()  # type: ignore[union-attr]
    place.daemon.start()
    typed(place.home, "run", "answer", run.id, "--choice", "2")
    until(lambda: place.seen["/77-0"], "the helper works", 60)
    place.daemon.child.kill()  # type: ignore[union-attr]
    place.daemon.start()
    until(lambda: place.ledger.task_view(run.task_id).state is TaskState.DONE, "it is done", 60)
    (newest, *_) = place.ledger.runs(run.task_id)
    assert ended(newest)[0] is Result.PASSED
    assert "blue" in str(newest.answer)
    assert "turns" in str(newest.answer)
    assert place.server.paid == paid + 3 + 3
    assert place.seen["/77-0"] == place.seen["/77-1"] == 1
