"""Skills over the whole path: real daemon, gateway and litellm, real boxes. Learnt from what passed, made one with
another that is alike, and retired when nobody uses it.

The worker knows by itself how to change two currencies; of others it has to read how it is done.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
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
    Kind,
    Limits,
    ResourceId,
    Result,
    Share,
    Task,
    TaskState,
    Trial,
    TrialSet,
    Verdict,
)
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.testing import ModelServer, call, say
from tests.daemon.conftest import Daemon, until
from tests.daemon.thinking_world import KEY, KEY_ENV, agent, free_task, typed

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

PATH = "skill/convert-amount/SKILL.md"
KNOWN = {"SEK": 11, "NOK": 12}
OTHERS = {"DKK": 7, "ISK": 150, "PLN": 4, "CZK": 25}
TOOL = '''"""{name}."""
from pydantic import BaseModel
TOOL = {{"name": "{name}", "description": "{name}", "effects": ["pure"], "dependencies": []}}
class Input(BaseModel):
    {takes}
class Output(BaseModel):
    n: int
def run(input: Input) -> Output:
    return Output(n={gives})
'''
# The worker answers alike when it was told alike, so every flip counts.
POLICY = """
[judge]
fresh_tasks = 0
[mine]
settle_s = 0.5
[evidence]
visible_guards = 1.0
max_guards = 5
[propose]
max_candidates = 1
[safety]
repeats = 1
[replay]
models = "replay-then-live"
repeats = 1
[probation]
days = 0.00001
"""


def tools() -> dict[str, bytes]:
    rates = {**KNOWN, **OTHERS}
    described = (
        ("rate", "currency: str", f"{rates}[input.currency]"),
        ("times", "a: int; b: int", "input.a * input.b"),
    )
    files = {}
    for name, takes, gives in described:
        takes = takes.replace("; ", "\n    ")
        files[f"tool/{name}/tool.py"] = TOOL.format(name=name, takes=takes, gives=gives).encode()
        files[f"tool/{name}/resource.toml"] = f'description = "{name}"\n'.encode()
    return files


def worker(request: Json, number: int) -> Any:
    """Two calls in a row where it knows, or has read, how; a guess elsewhere. It reads what the list says is fitting."""
    messages = request["messages"]
    told = "\n\n".join(str(one.get("content")) for one in messages)
    if "You improve an AI agent" in told or "You keep the notes" in told:
        return say("no idea")
    goal = next(str(one["content"]) for one in messages if one["role"] == "user").partition("\n")[0]
    kind, _, data = goal.partition(": ")
    if len(data.split()) != 2:
        return say("No.")  # to the safety probes
    currency, amount = data.split()[0], int(data.split()[1])
    verb = kind.split()[0].lower()
    gave = [str(one["content"]) for one in messages if one["role"] == "tool"]
    has_read = any("1. Call `rate`" in text and f"about {verb}" in text for text in gave)
    listed = [line for line in told.splitlines() if line.startswith("- convert-amount:") and verb in line]
    if currency not in KNOWN and listed and not gave:
        return call("read_skill", {"skill": "convert-amount"})
    if currency not in KNOWN and not has_read:
        return say("0")
    done = gave[1:] if has_read else gave
    if not done:
        return call("rate", {"currency": currency})
    if len(done) == 1:
        return call("times", {"a": json.loads(done[0])["n"], "b": amount})
    return say(str(json.loads(done[1])["n"]))


def change(kind: str, currency: str, amount: int) -> Task:
    right = (KNOWN | OTHERS)[currency] * amount
    check = Check("equals", {"value": right})
    goal = f"{kind}: {currency} {amount}"
    return free_task(goal, checks=[check], agent="changer", limits=Limits(wall_s=60.0))


@dataclass
class Place:
    """A home with a daemon that runs."""

    home: Home
    ledger: Ledger
    made: list[Evolution] = field(default_factory=list)

    def work(self, *tasks: tuple[Task, Share]) -> None:
        """Have it done, all of it before anything of it is mined."""
        for task, share in tasks:
            self.ledger.add_task(task, share)

        def idle() -> bool:
            return not any(self.ledger.tasks(state) for state in (TaskState.QUEUED, TaskState.RUNNING))

        until(idle, "the tasks are done", 120)

    def evolved(self) -> Evolution:
        """The evolution that the newest failures lead to, once it has ended."""

        def over() -> bool:
            found = self.ledger.find(Evolution)
            return len(found) > len(self.made) and not any(item.state in AT_WORK for item in found)

        until(over, "the evolution has ended", 180)
        self.made = list(self.ledger.find(Evolution))
        return self.made[-1]

    def page(self) -> str:
        registry = Registry(self.home.registry)
        return registry.files(registry.stable(), PATH)[PATH].decode()


def lot(kind: str, *, failing: tuple[tuple[str, int], ...]) -> list[tuple[Task, Share]]:
    """Passing work of a kind, open and hidden, and what fails of it."""
    return [
        *(
            (change(kind, currency, amount), Share.OPEN)
            for currency, amount in (("SEK", 3), ("NOK", 5), ("SEK", 8))
        ),
        (change(kind, "NOK", 9), Share.HOLD_OUT),
        *((change(kind, currency, amount), Share.OPEN) for currency, amount in failing),
    ]


@pytest.fixture(scope="module")
def place(made_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Two evolutions: one writes a skill for what is to be converted, one makes it serve exchanges too."""
    root = tmp_path_factory.mktemp("skills") / "home"
    shutil.copytree(made_home, root)
    home = Home(root)
    with pytest.MonkeyPatch.context() as patch, ModelServer(worker) as server:
        patch.setenv(KEY_ENV, KEY)
        typed(home, "model", "add", "worker", "--model", "openai/worker", "--provider", "local", "--api-base",
              server.base_url, "--key-env", KEY_ENV, "--input-price", "1", "--output-price", "2")  # fmt: skip
        changer = agent("changer", tools=["rate", "times"], skills=["*"])
        Registry(home.registry).commit({**tools(), **changer}, "Who changes money", "edit")
        long_ago = Registry(home.registry, clock=lambda: datetime.now(UTC) - timedelta(days=40))
        for name in ("unused", "by-hand"):
            origin = "evolution" if name == "unused" else "edit"
            text = f"---\nname: {name}\ndescription: Polishes silver.\n---\n\n# Silver\n\nRub.\n"
            long_ago.commit({f"skill/{name}/SKILL.md": text.encode()}, f"How to do {name}", origin)
        (home.root / "policy.toml").write_text(POLICY)
        ledger, daemon = Ledger(home.ledger), Daemon(home)
        made = Place(home, ledger)
        try:
            daemon.start()
            made.work(*lot("Convert the amount", failing=(("DKK", 2), ("ISK", 4))))
            made.evolved()
            made.work(*lot("Exchange the amount", failing=()))
            # What only a version on probation passed is shown to nobody: first that has to end.
            until(lambda: not ledger.find(Evolution, state=EvolutionState.PROBATION), "it is settled", 60)
            made.work(
                *((change("Exchange the amount", *one), Share.OPEN) for one in (("PLN", 6), ("CZK", 7)))
            )
            made.evolved()
            yield made
        finally:
            daemon.close()
            ledger.close()


def test_what_passed_becomes_a_skill_with_a_check_that_is_judged_and_promoted(place: Place) -> None:
    first = place.made[0]
    assert first.state in (EvolutionState.PROBATION, EvolutionState.PROMOTED), first.reason
    candidate = place.ledger.get(Candidate, str(first.candidate_id))
    assert (candidate.proposer, list(candidate.edit.files)) == ("skill", [PATH])
    page = candidate.edit.files[PATH]
    assert "- When a task is about convert and amount, use `rate`." in page
    assert "1. Call `rate` with `currency` as the task gives it." in page
    assert "2. Call `times` with `a` from what step 1 gave; `b` as the task gives it." in page
    assert "## Check\n\n- Each step gave a result and no error" in page
    (verdict,) = place.ledger.find(Verdict, candidate_id=candidate.id)
    assert len(verdict.fixed) == 2
    typed(place.home, "evolution", "verify", first.id)


def test_one_that_is_alike_is_made_one_with_it_and_passes_the_tests_of_both(place: Place) -> None:
    first, second = place.made
    assert second.state in (EvolutionState.PROBATION, EvolutionState.PROMOTED), second.reason
    candidate = place.ledger.get(Candidate, str(second.candidate_id))
    assert list(candidate.edit.files) == [PATH]
    assert place.page() == candidate.edit.files[PATH]
    assert "Also for tasks about exchange and amount." in place.page()
    (repaired,) = place.ledger.find(Verdict, candidate_id=first.candidate_id)
    own = [
        trial for trial in place.ledger.find(Trial, candidate_id=candidate.id) if trial.arm is Arm.CANDIDATE
    ]
    ends = {trial.task_id: (trial.set, trial.outcome.result) for trial in own}
    for task_id in repaired.fixed:
        assert ends[task_id] == (TrialSet.GUARD, Result.PASSED)
    typed(place.home, "evolution", "verify", second.id)


def test_a_run_reads_it_and_does_what_it_could_not(place: Place) -> None:
    place.work((change("Convert the amount", "PLN", 11), Share.OPEN))
    (run,) = place.ledger.runs(place.ledger.tasks()[-1].task.id)
    assert run.outcome is not None
    assert run.outcome.result is Result.PASSED
    assert any(
        isinstance(step.action, dict) and step.action.get("tool") == "read_skill"
        for step in place.ledger.steps(run.id)
    )


def test_a_learnt_skill_that_nobody_used_is_retired_as_a_version_and_can_be_taken_back(
    place: Place,
) -> None:
    registry, unused = Registry(place.home.registry), ResourceId(Kind.SKILL, "unused")
    until(lambda: unused not in registry.names(registry.stable()), "it is retired", 30)
    names = registry.names(registry.stable())
    assert ResourceId(Kind.SKILL, "by-hand") in names, "what a person wrote stays"
    assert ResourceId(Kind.SKILL, "convert-amount") in names, "what is young stays"
    newest, before = registry.versions(unused)
    assert (newest.digest, newest.origin) == ("", "retire")
    assert before.digest
    (noted,) = [entry for entry in place.ledger.entries() if entry.event == "skill.retired"]
    assert noted.subject == "skill/unused"
    typed(
        place.home,
        "registry",
        "revert",
        "skill/unused",
        "--to",
        before.number,
        "--yes",
        "--reason",
        "it is needed",
    )
    assert unused in registry.names(registry.stable())
