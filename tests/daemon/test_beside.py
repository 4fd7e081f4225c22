"""What runs of a suite read and may ask: the kernel's files before the snapshot's, and nothing that would stay."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.service import Service, service
from agentos.domain import Json, Kind, Limits, MemoryProposal, Question, ResourceId, Task, new_id
from agentos.home import Home
from agentos.sandboxes.choice import Choice
from agentos.settings import load_settings

pytestmark = pytest.mark.sandbox

TELLS = """
def tried(ask):
    try:
        return ask()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def run(sdk):
    sdk.finish({
        "tools": [card.name for card in sdk.tools()],
        "recalled": tried(lambda: sdk.recall("gravel paths", 5)),
        "remember": tried(lambda: sdk.remember("a lesson", "a reason")),
        "person": tried(lambda: sdk.ask_person("May I?")),
        "delegate": tried(lambda: sdk.delegate("default", "work")),
    })
"""
TOOL = '''"""{name}."""
from pydantic import BaseModel
TOOL = {{"name": "{name}", "description": "Rakes gravel paths", "effects": ["pure"]}}
class Input(BaseModel):
    text: str = ""
class Output(BaseModel):
    text: str
def run(input: Input) -> Output:
    return Output(text="")
'''
MEMORY = ResourceId(Kind.MEMORY, "gravel")


@pytest.fixture(scope="module")
def world(made_home: Path, choice: Choice, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    home = Home(tmp_path_factory.mktemp("beside") / "home")
    shutil.copytree(made_home, home.root)
    settings = load_settings(home.settings).model_copy(update={"sandbox": "bubblewrap"})
    with service(home, settings, given=choice) as made:
        made.sandbox.start()
        files = {
            "agent/teller/resource.toml": 'description = "Tells"\nharness = "teller"\nagents = ["default"]\n',
            "harness/teller/resource.toml": 'description = "Tells"\n',
            "harness/teller/harness.py": TELLS,
            f"{MEMORY}/memory.md": "# Lessons\n\nGravel paths are raked on Mondays.\n",
            f"{MEMORY}/resource.toml": 'description = "Of the garden"\n',
            **{f"tool/rake-{n}/tool.py": TOOL.format(name=f"rake_{n}") for n in range(30)},
            **{f"tool/rake-{n}/resource.toml": 'description = "Rakes gravel paths"\n' for n in range(30)},
        }
        made.registry.commit({path: text.encode() for path, text in files.items()}, "Many tools", "edit")
        yield made


def told(world: Service, files: Mapping[str, bytes], without: frozenset[ResourceId]) -> dict[str, Any]:
    task = Task(
        new_id("task"),
        "t",
        "rake gravel paths",
        None,
        (),
        "teller",
        Limits(wall_s=30.0),
        (),
        (),
        None,
        datetime.now(UTC),
    )
    executor = world.parts.executor_with(files, without)
    done = executor.execute(task, world.registry.stable(), new_id("run"))
    answer: Json = done.answer
    assert isinstance(answer, dict), done.outcome
    return answer


def test_a_tool_beside_is_there_however_many_others_fit_the_goal(world: Service) -> None:
    beside = {"tool/probing/tool.py": TOOL.format(name="probing").replace("Rakes", "Does").encode()}
    found = told(world, beside, frozenset())
    assert "probing" in found["tools"]
    assert len([name for name in found["tools"] if name.startswith("rake_")]) == 23
    assert "probing" not in told(world, {}, frozenset())["tools"]


def test_a_memory_that_is_left_out_is_not_recalled(world: Service) -> None:
    assert "Mondays" in str(told(world, {}, frozenset())["recalled"])
    assert "Mondays" not in str(told(world, {}, frozenset({MEMORY}))["recalled"])


def test_nothing_of_it_stays_and_nobody_is_bothered(world: Service) -> None:
    found = told(world, {}, frozenset())
    for what in ("remember", "person", "delegate"):
        assert "nothing here answers" in found[what], found[what]
    assert not world.ledger.find(MemoryProposal)
    assert not world.ledger.find(Question)
    assert not world.ledger.tasks()
