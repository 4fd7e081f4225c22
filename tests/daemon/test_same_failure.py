"""Real runs of agents that think: the same lapse over different goals is one failure, others are others."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentos.daemon.offline import offline_context
from agentos.domain import Check, Json, Run, Share, TaskState
from agentos.evolver.dependencies import Dependencies
from agentos.evolver.find.fingerprints import root_step
from agentos.evolver.find.mining import inspect
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.testing import call, say
from agentos.testing.modelserver.replies import ServerReply
from tests.daemon.conftest import Daemon, until
from tests.daemon.thinking_world import KEY, KEY_ENV, agent, free_task, scripted, turn_of, world

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

BROKEN = '''"""broken."""
from pydantic import BaseModel
TOOL = {"name": "broken", "description": "breaks", "effects": ["pure"]}
class Input(BaseModel):
    text: str
class Output(BaseModel):
    text: str
def run(input: Input) -> Output:
    return Output(text={}[input.text])
'''


def first(*calls: ServerReply) -> Callable[[Json], ServerReply]:
    """These replies, turn by turn, then an answer that is wrong."""
    return lambda request: calls[turn_of(request)] if turn_of(request) < len(calls) else say("no")


SCRIPTS: dict[str, Callable[[str], Callable[[Json], ServerReply]]] = {
    "circle": lambda text: lambda request: call("pure", {"text": text}),
    "unknown": lambda text: lambda request: call("csv_total", {"path": text}),
    "break": lambda text: first(call("broken", {"text": text})),
    "answer": lambda text: first(call("pure", {"text": text})),
    "shell": lambda text: first(call("shell", {"command": f"no-such-program {text}"})),
    "recover": lambda text: first(call("shell", {"command": "exit 3"}), call("shell", {"command": "true"})),
}
ROOT = {  # what the step of the root did
    "circle": "pure",
    "unknown": "csv_total",
    "break": "broken",
    "shell": "shell",
}


# The parts on the home, and by script its runs.
Failed = tuple[Dependencies, dict[str, list[Run]]]


@pytest.fixture(scope="module")
def failed(made_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Failed]:
    """Two runs of each script, of different goals."""
    root = tmp_path_factory.mktemp("same") / "home"
    shutil.copytree(made_home, root)
    home = Home(root)
    with (
        pytest.MonkeyPatch.context() as patch,
        world(home, scripted(SCRIPTS), settings='evolve = "manual"\n'),
    ):
        patch.setenv(KEY_ENV, KEY)
        files = agent("clerk", tools=["pure", "broken", "shell"])
        files |= {
            "tool/broken/tool.py": BROKEN.encode(),
            "tool/broken/resource.toml": b'description = "breaks"\n',
        }
        registry = Registry(home.registry)
        registry.commit(files, "What these tests need", "edit")
        registry.mark_good(registry.stable())  # no run waits for a probe of the agents
        check = (Check("contains", {"value": "42"}),)
        tasks = {
            word: [free_task(f"[{word} {text}]", agent="clerk", checks=check) for text in ("one", "two")]
            for word in SCRIPTS
        }
        every = [task for both in tasks.values() for task in both]
        ledger, daemon = Ledger(home.ledger), Daemon(home)
        for task in every:
            ledger.add_task(task, Share.OPEN)
        daemon.start()
        until(lambda: all(ledger.task_view(task.id).state is TaskState.DONE for task in every), "done", 90)
        with offline_context(home) as parts:
            yield parts, {word: [ledger.runs(task.id)[0] for task in both] for word, both in tasks.items()}
        daemon.close()
        ledger.close()


def named(failed: Failed, word: str) -> tuple[str, str]:
    parts, runs = failed
    one, other = (inspect(parts, run) for run in runs[word])
    assert one is not None
    assert other is not None
    assert one.fingerprint == other.fingerprint
    return one.fingerprint.klass, one.fingerprint.signature


def test_each_lapse_of_two_goals_is_one_failure(failed: Failed) -> None:
    assert {word: named(failed, word) for word in SCRIPTS} == {
        "circle": ("wrong_stop", "agent/clerk | loop | pure | "),
        "unknown": ("wrong_call", "agent/clerk | unknown_tool | csv_total | unknown_tool"),
        "break": ("tool_error", "tool/broken/tool.py | KeyError | tool/broken/tool.py:run | S"),
        "answer": ("missed_goal", "agent/clerk | check | contains |  | pure | "),
        "shell": (
            "missed_goal",
            "agent/clerk | check | contains | tool/shell/tool.py: not_found | shell | not_found",
        ),
        "recover": ("missed_goal", "agent/clerk | check | contains |  | shell | "),
    }


@pytest.mark.parametrize("word", ROOT)
def test_the_root_is_the_call_that_it_began_with(failed: Failed, word: str) -> None:
    parts, runs = failed
    steps = parts.journal.steps(runs[word][0].id)
    root = steps[root_step(steps)]
    assert (root.node, root.action["tool"]) == ("act", ROOT[word])
    assert not any(step.node == "act" for step in steps[: root.index])


def test_an_answer_that_only_a_check_refuses_has_its_root_in_the_last_word(
    failed: Failed,
) -> None:
    parts, runs = failed
    steps = parts.journal.steps(runs["answer"][0].id)
    assert root_step(steps) == max(step.index for step in steps if step.node == "model")
