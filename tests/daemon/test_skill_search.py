"""Runs look for skills that they were not given: over their snapshot, and of those that their agent may have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentos.daemon.job.selection import MOST
from agentos.daemon.requests.lookups import SKILL_MAX, SkillSearch
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.domain import Kind, Task
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.ports import Attempt
from agentos.registry.store import Registry
from agentos.retrieval.index import Index
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap

pytestmark = pytest.mark.sandbox

FLEET = 2 * MOST[Kind.SKILL]
LOOKS = "def run(sdk):\n    found = sdk.find_skills('statutes of a co-operative', 2)\n"


def skill(name: str, description: str, text: str = "Do it.") -> dict[str, bytes]:
    return {
        f"skill/{name}/SKILL.md": f"---\nname: {name}\ndescription: {description}\n---\n{text}\n".encode()
    }


class World:
    def __init__(self, home: Home, ledger: Ledger, sandbox: Bubblewrap, task: Task) -> None:
        self.registry = Registry(home.registry)
        self.task = replace(task, call=None, goal="Rename the photographs of the boat")
        index = Index(home.index, self.registry)
        serving = RunServices(finder=index, answerers={"skills": SkillSearch(index, self.registry).answerer})
        self.executor = BoxExecutor(self.registry, ledger.blobs, sandbox, serving=serving)
        files = skill(
            "bylaws", "Drafts the statutes of a co-operative", "First the name.\n" + "x" * SKILL_MAX
        )
        for number in range(FLEET):
            files |= skill(f"photos-{number}", f"Renames photographs of boat {number}")
        self.registry.commit(files, "Skills", "edit")

    def run(self, harness: str, skills: str = '["*"]') -> Attempt:
        agent = f'description = "One"\ntools = []\nskills = {skills}\n'.encode()
        files = {"harness/default/harness.py": harness.encode(), "agent/default/resource.toml": agent}
        self.registry.commit(files, "Another harness", "edit")
        return self.executor.execute(self.task, self.registry.stable(), "run-1")


@pytest.fixture
def world(home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Any) -> World:
    return World(home, ledger, sandbox, make_task("double", n=1))


def test_what_the_goal_did_not_bring_is_found_by_other_words(world: World) -> None:
    done = world.run(LOOKS + "    sdk.finish([found, sdk.more_skills, [s.name for s in sdk.skills()]])\n")
    (found,), more, given = done.answer
    assert found["name"] == "bylaws"
    assert "bylaws" not in given
    names = world.registry.names(world.registry.stable())
    assert more == sum(name.kind is Kind.SKILL for name in names) - len(given)
    assert found["description"] == "Drafts the statutes of a co-operative"
    assert "First the name." in found["text"]
    assert len(found["text"]) == SKILL_MAX
    (step,) = done.steps
    assert (step.node, step.observation) == ("skills", {"skills": ["bylaws"]})


def test_what_the_run_has_is_not_found_again(world: World) -> None:
    harness = "def run(sdk):\n    found = sdk.find_skills('photographs of the boat', 10)\n"
    done = world.run(
        harness + "    sdk.finish([[s['name'] for s in found], [s.name for s in sdk.skills()]])\n"
    )
    found, given = done.answer
    assert len(found) == 10
    assert not {*found} & {*given}


def test_an_agent_finds_only_what_it_may_have(world: World) -> None:
    done = world.run(LOOKS + "    sdk.finish([s['name'] for s in found])\n", skills='["photos-*"]')
    assert done.answer == []
    done = world.run(LOOKS + "    sdk.finish([s['name'] for s in found])\n", skills="[]")
    assert done.answer == []


def test_what_is_no_query_is_refused(world: World) -> None:
    harness = (
        "from agentos.worker.sdk import Refused\n"
        "def run(sdk):\n"
        "    def tried(body):\n"
        "        try:\n"
        "            return sdk._talk.ask('skills', body)\n"
        "        except Refused as error:\n"
        "            return error.fault.type\n"
        "    odd = [{}, {'query': ' '}, {'query': 'x' * 2_001}, {'query': 'x', 'limit': 0},\n"
        "           {'query': 'x', 'limit': True}, {'query': 'x', 'limit': 11}]\n"
        "    sdk.finish([tried(body) for body in odd])\n"
    )
    assert world.run(harness).answer == ["request"] * 6


def test_a_run_that_may_search_is_another_when_any_skill_is_another(world: World) -> None:
    world.run(LOOKS + "    sdk.finish(1)\n")
    before = world.executor.given(world.task, world.registry.stable())
    world.registry.commit(skill("bylaws", "Drafts statutes"), "Another text", "edit")
    assert world.executor.given(world.task, world.registry.stable()) != before
    before = world.executor.given(world.task, world.registry.stable())
    greeting = {"resource.toml": b'description = "One"\n', "prompt.md": b"Be brief."}
    files = {f"prompt/greeting/{name}": content for name, content in greeting.items()}
    world.registry.commit(files, "Nothing that it could find", "edit")
    assert world.executor.given(world.task, world.registry.stable()) == before
