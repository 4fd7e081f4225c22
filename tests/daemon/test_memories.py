"""Runs recall what the registry remembers, and propose what it should; they never write it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from agentos.daemon.requests.lookups import PROPOSALS_MAX, Memories, normalised
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.domain import Json, MemoryProposal, Mode, Snapshot, Task
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.models.redaction import Redactor
from agentos.ports import Attempt, Plan
from agentos.registry.store import Registry
from agentos.retrieval.index import Index
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from tests.refusals import raises

pytestmark = pytest.mark.sandbox

REFUSED = (
    "from agentos.worker.sdk import Refused\n"
    "def run(sdk):\n"
    "    def tried(what, **body):\n"
    "        try:\n"
    "            return sdk._talk.ask(what, body)\n"
    "        except Refused as error:\n"
    "            return error.fault.type\n"
)


class World:
    def __init__(self, home: Home, ledger: Ledger, sandbox: Bubblewrap, task: Task) -> None:
        self.registry = Registry(home.registry)
        self.ledger = ledger
        self.task = replace(task, call=None, goal="remember")
        memories = Memories(ledger, Index(home.index, self.registry).recall)
        answerers = {"recall": memories.recalling, "remember": memories.remembering}
        serving = RunServices(answerers=answerers, redact=Redactor([]).value)
        self.executor = BoxExecutor(self.registry, ledger.blobs, sandbox, serving=serving)

    def run(self, harness: str, plan: Plan | None = None, run_id: str = "run-1") -> Attempt:
        self.registry.commit({"harness/default/harness.py": harness.encode()}, "Another harness", "edit")
        return self.executor.execute(self.task, self.registry.stable(), run_id, plan=plan)

    def proposals(self) -> list[MemoryProposal]:
        return list(self.ledger.find(MemoryProposal))


@pytest.fixture
def world(home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Any) -> World:
    return World(home, ledger, sandbox, make_task("double", n=1))


def test_a_memory_is_proposed_once_and_the_registry_stays_as_it_is(world: World) -> None:
    harness = (
        "def run(sdk):\n"
        "    texts = ['Dates are in UTC.', '  dates are  in utc', 'Totals\\x1b[2J are gross']\n"
        "    sdk.finish([sdk.remember(text, 'it failed once') for text in texts])\n"
    )
    done = world.run(harness)
    before = world.registry.stable()
    assert done.answer[0] == done.answer[1] != done.answer[2]
    first, second = world.proposals()
    assert (first.id, first.text, first.why, first.run_id, first.task_key) == (
        done.answer[0],
        "Dates are in UTC.",
        "it failed once",
        "run-1",
        world.task.key,
    )
    assert second.text == "Totals[2J are gross"
    assert world.run(harness, run_id="run-2").answer == done.answer
    assert [proposal.run_id for proposal in world.proposals()] == ["run-1", "run-1"]
    assert world.registry.stable() == before


def test_a_trial_proposes_nothing_and_cannot_tell(world: World) -> None:
    harness = "def run(sdk):\n    sdk.finish(sdk.remember('Dates are in UTC'))\n"
    tried = world.run(harness, Plan(mode=Mode.REPLAY_THEN_LIVE, evolution_id="evo-1"), "trial-1")
    assert world.proposals() == []
    assert world.run(harness).answer == tried.answer == world.proposals()[0].id


def test_what_is_no_memory_is_refused_and_there_are_only_so_many(world: World) -> None:
    harness = REFUSED + (
        "    odd = [{}, {'text': ' '}, {'text': 7}, {'text': 'x' * 2_001}, {'text': 'x', 'why': 'y' * 501}]\n"
        "    refused = [tried('remember', **body) for body in odd]\n"
        f"    many = [tried('remember', text=f'lesson {{n}}') for n in range({PROPOSALS_MAX + 1})]\n"
        "    again = tried('remember', text='Lesson 0!')\n"
        "    sdk.finish([refused, many[-2:], again])\n"
    )
    refused, last, again = world.run(harness).answer
    assert refused == ["request"] * 5
    assert (last[0].keys(), last[1]) == ({"proposed"}, "limit")
    assert again == "limit"
    assert len(world.proposals()) == PROPOSALS_MAX


def test_a_secret_is_not_proposed(world: World) -> None:
    secret = "sk-proj-abcdefghijklmnop1234"
    world.run(f"def run(sdk):\n    sdk.finish(sdk.remember('use {secret}', 'it is {secret}'))\n")
    (proposal,) = world.proposals()
    assert (proposal.text, proposal.why) == ("use [redacted:api-key]", "it is [redacted:api-key]")


def test_recall_searches_the_snapshot_of_the_run(world: World) -> None:
    memory = "# Lessons\n\n- Dates in the ledger export are in UTC\n- Totals are gross of tax\n"
    world.registry.commit({"memory/default/memory.md": memory.encode()}, "Lessons", "edit")
    done = world.run("def run(sdk):\n    sdk.finish(sdk.recall('which time zone have dates?', 1))\n")
    (found,) = done.answer
    assert found["text"] == "Dates in the ledger export are in UTC"
    (step,) = done.steps
    assert (step.node, step.observation) == ("recall", {"memories": [found["id"]]})


def test_what_is_no_query_is_refused(world: World) -> None:
    harness = REFUSED + (
        "    odd = [{}, {'query': ' '}, {'query': 'x' * 2_001}, {'query': 'x', 'limit': 0},\n"
        "           {'query': 'x', 'limit': True}, {'query': 'x', 'limit': 21}]\n"
        "    sdk.finish([tried('recall', **body) for body in odd])\n"
    )
    assert world.run(harness).answer == ["request"] * 6


def test_a_search_that_fails_voids_the_run(home: Home, ledger: Ledger, world: World) -> None:
    from agentos.errors import Unavailable

    def broken(snapshot: Snapshot, query: str, limit: int) -> list[Mapping[str, Json]]:
        raise Unavailable("the index is gone")

    world.executor = BoxExecutor(
        world.registry,
        ledger.blobs,
        world.executor.place(world.task, world.registry.stable()),
        serving=RunServices(answerers={"recall": Memories(ledger, broken).recalling}),
    )
    with raises(Unavailable, names=["the index is gone"]):
        world.run("def run(sdk):\n    sdk.recall('x')\n")


def test_equal_texts_are_told_by_their_words() -> None:
    assert normalised("Dates are\n in UTC.") == normalised("dates ARE in utc")
    assert normalised("a b") != normalised("ab")
