"""A lesson from runs that pass and fail, over the whole path: real daemon, gateway and litellm, real boxes.

The worker is lucky every other time that it is asked for the same: that is the contrast. It can be told.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentos.domain import (
    AT_WORK,
    Arm,
    Candidate,
    Check,
    Evolution,
    EvolutionState,
    Json,
    Limits,
    MemoryProposal,
    ProposalState,
    Result,
    Share,
    Task,
    TaskState,
    Trial,
    Verdict,
)
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.testing import ModelServer, Rules, say
from tests.daemon.conftest import Daemon, until
from tests.daemon.thinking_world import KEY, KEY_ENV, free_task, typed

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

PATH = "memory/default/memory.md"
KNOWN = "# Lessons\n\n- Weights are in grams. <!-- m-0badcafe -->\n"
FACT = "Prices are in cents."
# A run of other work had the same thought, so no brief tells of it.
WISH = MemoryProposal(
    "proposal-cents", "run-0", "key", "prices are in cents", "", datetime(2026, 1, 1, tzinfo=UTC)
)
# The worker answers alike when it was told alike, so every flip counts.
POLICY = """
[mine]
settle_s = 1.0
[replay]
models = "replay-then-live"
repeats = 1
[safety]
repeats = 1
"""


@dataclass
class Cast:
    """The worker, and the one that reads lessons from its runs."""

    rules: Rules = field(default_factory=Rules)
    lucky: Rules = field(default_factory=lambda: Rules(FACT))
    seen: Counter[str] = field(default_factory=Counter)
    worked: list[str] = field(default_factory=list)
    taught: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Json, number: int) -> Any:
        told = "\n\n".join(str(one.get("content")) for one in request["messages"])
        with self.lock:
            if "You keep the notes of an AI agent" in told:
                self.taught.append(told)
                return say(json.dumps(self.lesson()))
            if "You improve an AI agent" in told:
                return say("no idea")
            self.worked.append(told)
            goal = str(request["messages"][-1].get("content"))
            self.seen[goal] += 1
            lucky = self.seen[goal] % 2 == 0
        return (self.lucky if lucky else self.rules)(request, number)

    @staticmethod
    def lesson() -> Json:
        return {
            "operation": "ADD",
            "lesson": FACT,
            "cause": "it took cents for euros",
            "predicted_fixes": ["T1", "T2"],
            "tasks_at_risk": [],
        }


def total(*values: int, right: float, of: str = "prices") -> Task:
    goal = f"Give the total of the {of}: {', '.join(map(str, values))}"
    check = Check("equals", {"value": right})
    return free_task(goal, checks=[check], agent="default", limits=Limits(wall_s=60.0))


def others() -> Iterator[tuple[Task, Share]]:
    """Guards and a hidden one."""
    for numbers, right, of in (((1, 2), 3, "numbers"), ((20, 22), 42, "points"), ((5, 6), 11, "apples")):
        yield total(*numbers, right=right, of=of), Share.OPEN
    yield total(8, 9, right=17, of="pears"), Share.HOLD_OUT


def prices() -> Iterator[tuple[Task, Share]]:
    yield total(120, 250, right=3.7), Share.OPEN
    yield total(1000, 99, right=10.99), Share.OPEN


@dataclass
class Place:
    home: Home
    cast: Cast
    ledger: Ledger
    evolution: Evolution


@pytest.fixture(scope="module")
def place(made_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A home in which an evolution on the prices has ended."""
    root = tmp_path_factory.mktemp("lessons") / "home"
    shutil.copytree(made_home, root)
    home, cast = Home(root), Cast()
    with pytest.MonkeyPatch.context() as patch, ModelServer(cast) as server:
        patch.setenv(KEY_ENV, KEY)
        typed(home, "model", "add", "worker", "--model", "openai/worker", "--provider", "local", "--api-base",
              server.base_url, "--key-env", KEY_ENV, "--input-price", "1", "--output-price", "2")  # fmt: skip
        Registry(home.registry).commit({PATH: KNOWN.encode()}, "What is known", "edit")
        (home.root / "policy.toml").write_text(POLICY)
        ledger, daemon = Ledger(home.ledger), Daemon(home)
        ledger.keep(WISH)
        try:
            daemon.start()
            yield Place(home, cast, ledger, evolved(ledger, cast))
        finally:
            daemon.close()
            ledger.close()


def evolved(ledger: Ledger, cast: Cast) -> Evolution:
    """Do the work; the evolution that this leads to, once it has ended."""

    def idle() -> bool:
        return not any(ledger.tasks(state) for state in (TaskState.QUEUED, TaskState.RUNNING))

    def over() -> bool:
        found = ledger.find(Evolution)
        return bool(found) and not any(item.state in AT_WORK for item in found)

    for work in (others(), prices(), prices()):  # the second run of equal work is the lucky one
        for task, share in work:
            ledger.add_task(task, share)
        until(idle, "the tasks are done", 90)
    cast.lucky = cast.rules
    until(over, "the evolution has ended", 120)
    return ledger.find(Evolution)[-1]


def test_the_contrast_becomes_a_lesson_that_is_promoted(place: Place) -> None:
    assert place.evolution.state in (EvolutionState.PROBATION, EvolutionState.PROMOTED), (
        place.evolution.reason
    )
    candidate = place.ledger.get(Candidate, str(place.evolution.candidate_id))
    assert candidate.proposer == "lesson"
    assert candidate.edit.operator == "lesson ADD (worker)"
    registry = Registry(place.home.registry)
    memory = registry.files(registry.stable(), PATH)[PATH].decode()
    assert memory.startswith(KNOWN.rstrip())
    assert f"- {FACT} <!-- m-" in memory


def test_who_had_proposed_the_same_is_told_what_became_of_it(place: Place) -> None:
    def decided() -> bool:
        return place.ledger.get(MemoryProposal, WISH.id).state is not ProposalState.OPEN

    until(decided, "the proposal is closed", 30)
    found = place.ledger.get(MemoryProposal, WISH.id)
    assert (found.state, found.resource) == (ProposalState.ACCEPTED, "memory/default")
    assert found.reason == f"brought by {place.evolution.id}"
    assert WISH.id not in typed(place.home, "memory", "list")
    assert f"brought by {place.evolution.id}" in " ".join(
        typed(place.home, "memory", "show", WISH.id).split()
    )


def test_the_teacher_was_shown_both_kinds_of_runs_and_nothing_hidden(place: Place) -> None:
    (told,) = place.cast.taught
    assert told.count("it failed 1 times and passed 1 times") == 2
    assert "[m-0badcafe] Weights are in grams." in told
    assert "pears" not in told
    assert "apples" not in told


def test_it_was_held_against_no_memory_at_all_and_that_can_be_computed_again(place: Place) -> None:
    candidate = place.ledger.get(Candidate, str(place.evolution.candidate_id))
    control = place.ledger.find(Trial, candidate_id=candidate.id)
    control = [trial for trial in control if trial.arm is Arm.CONTROL]
    assert candidate.control is not None
    assert {trial.snapshot for trial in control} == {candidate.control}
    assert len({trial.task_id for trial in control}) == 6
    (verdict,) = place.ledger.find(Verdict, candidate_id=candidate.id)
    assert len(verdict.fixed) == 2
    typed(place.home, "evolution", "verify", place.evolution.id)


def test_no_model_that_works_is_shown_an_id(place: Place) -> None:
    assert any(FACT in told for told in place.cast.worked)
    assert not any("<!--" in told or "m-0badcafe" in told for told in place.cast.worked)


def test_how_a_lesson_fared_and_where_it_came_from_is_shown(place: Place) -> None:
    shown = json.loads(typed(place.home, "memory", "list", "--json"))
    old, new = shown["lessons"]
    open_runs = [run for run in place.ledger.runs() if run.share is Share.OPEN]
    passed = [run for run in open_runs if run.outcome and run.outcome.result is Result.PASSED]
    assert (old["id"], old["uses"], old["successes"]) == ("m-0badcafe", len(open_runs), len(passed))
    assert 0 < old["score"] < 1
    assert (new["text"], new["uses"], new["evolution"]) == (FACT, 0, place.evolution.id)
    told = typed(place.home, "memory", "show", "default")
    assert FACT in told
    assert "<!--" not in told
