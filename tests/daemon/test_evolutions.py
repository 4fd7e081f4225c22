"""Evolutions in a real daemon: repaired and promoted once, whatever is killed; consent that holds."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentos.daemon.offline import offline_context
from agentos.daemon.upkeep.doctor import examine
from agentos.domain import (
    AT_WORK,
    Candidate,
    Check,
    Consent,
    Decision,
    Evolution,
    EvolutionState,
    Kind,
    ResourceId,
    Result,
    Share,
    Sighting,
    Task,
    Trial,
    TrialSet,
    Verdict,
    new_id,
)
from agentos.evolver.cycle import rates_of, trials_of
from agentos.evolver.find.mining import flag
from agentos.evolver.promote.consent import Approval, issue
from agentos.evolver.promote.promotion import approve, roll_back
from agentos.evolver.verdict.judge import recompute
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from tests.command_server import command_server
from tests.daemon.conftest import QUICK_POLICY, Daemon, _make_task, until

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

SKILL = ResourceId(Kind.SKILL, "exam-kit")
PATH = "skill/exam-kit/tools/grade.py"
FAULTY = '''"""Whether a number of points is a pass."""

from pydantic import BaseModel

TOOL = {"name": "grade", "description": "Whether the points are a pass", "effects": ["pure"], "dependencies": []}


class Input(BaseModel):
    points: int
    needed: int


class Output(BaseModel):
    grade: str


def run(input: Input) -> Output:
    if input.points > input.needed:
        return Output(grade="pass")
    return Output(grade="fail")
'''
RIGHT = FAULTY.replace("input.points > input.needed", "input.points >= input.needed")
KILLS = int(os.environ.get("AGENTOS_TEST_KILLS", "3"))  # each start costs a second


PAIRS = ((50, 50), (40, 40), (71, 71), (60, 50), (41, 40), (9, 8), (10, 50), (39, 40), (1, 9))


def set_exam(
    home: Home, policy: str = QUICK_POLICY, pairs: tuple[tuple[int, int], ...] = PAIRS
) -> list[Task]:
    """The faulty skill, and a task for each pair of points and points needed; gives the failing ones."""
    files = {
        PATH: FAULTY.encode(),
        "skill/exam-kit/SKILL.md": b"---\nname: exam-kit\ndescription: Grades.\n---\n",
    }
    Registry(home.registry).commit(files, "A skill with an honest fault", "edit")
    (home.root / "policy.toml").write_text(policy)
    made = {pair: exam_task(*pair) for pair in pairs}
    add(home, [*made.values()])
    return [task for (points, needed), task in made.items() if points == needed]


def exam_task(points: int, needed: int) -> Task:
    right = "pass" if points >= needed else "fail"
    task = _make_task("exam-kit/grade", points=points, needed=needed)
    return replace(task, checks=(Check("equals", {"value": right, "path": "grade"}),))


@dataclass(frozen=True)
class Exam:
    """A home with the exam, and the tasks that fail there."""

    home: Home
    failing: list[Task]


@pytest.fixture(scope="module")
def asked(made_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Exam:
    """An evolution waits for a person or for three new tasks; the daemon that led it there has ended in order."""
    home = Home(tmp_path_factory.mktemp("asked") / "home")
    shutil.copytree(made_home, home.root)
    failing = set_exam(home, "[propose]\nbudget_s = 5.0\n[judge]\nfresh_tasks = 3\nfresh_mended = 1\n")
    daemon = Daemon(home)
    try:
        daemon.start()
        until(
            lambda: [it.state for it in evolutions(home)] == [EvolutionState.AWAITING_CONSENT], "it waits", 60
        )
        daemon.signal(signal.SIGTERM)
        assert daemon.ended() == 0
    finally:
        daemon.close()
    return Exam(home, failing)


@pytest.fixture
def waiting(asked: Exam, tmp_path: Path) -> Exam:
    """The same, to go on with."""
    shutil.copytree(asked.home.root, tmp_path / "waiting")
    return replace(asked, home=Home(tmp_path / "waiting"))


@pytest.fixture
def served(waiting: Exam) -> Iterator[Daemon]:
    """Its daemon, at work again."""
    daemon = Daemon(waiting.home)
    yield daemon.start()
    daemon.close()


def evolutions(home: Home) -> list[Evolution]:
    return list(Reader(home.ledger).find(Evolution))


def source(home: Home) -> str:
    registry = Registry(home.registry)
    return registry.files(registry.stable(), PATH)[PATH].decode()


def ended(home: Home) -> bool:
    found = evolutions(home)
    return bool(found) and not any(item.state in AT_WORK for item in found)


def test_a_recurring_failure_is_repaired_promoted_run_again_from_its_records_and_reverted(
    served: Daemon, waiting: Exam
) -> None:
    home, reader = waiting.home, Reader(waiting.home.ledger)
    (evolution,) = evolutions(home)
    with offline_context(home) as parts:
        approve(parts, parts.evolution(evolution.id), "person:ada")
    until(lambda: evolutions(home)[0].state is EvolutionState.PROBATION, "it is promoted")
    assert source(home) == RIGHT

    again = [replace(task, id=f"{task.id}-again") for task in waiting.failing]
    add(home, again)
    until(lambda: all(_result(reader, task) is Result.PASSED for task in again), "the same work passes")

    with offline_context(home) as parts:
        roll_back(
            parts, parts.evolution(evolution.id), "declined by a test: to see it fail again", origin="revert"
        )
    once_more = [replace(task, id=f"{task.id}-once-more") for task in waiting.failing]
    add(home, once_more)
    until(lambda: all(_result(reader, task) is Result.FAILED for task in once_more), "it fails as it did")
    assert source(home) == FAULTY
    numbers = [version.number for version in Registry(home.registry).versions(SKILL)]
    assert len(numbers) == len(set(numbers)) == 3, "the revert is a version of its own"
    served.signal(signal.SIGTERM)
    assert served.ended() == 0
    run_again(home, evolution)


def test_work_that_came_since_promotes_what_nobody_was_asked_for(served: Daemon, waiting: Exam) -> None:
    home, reader = waiting.home, Reader(waiting.home.ledger)
    (evolution,) = evolutions(home)
    known = replace(waiting.failing[0], id=new_id("task"), goal="the same work, filed anew")
    add(home, [exam_task(33, 33), exam_task(80, 12), known])
    until(lambda: "for 1 more checked task of" in evolutions(home)[0].reason, "two of three were tried")
    assert reader.find(Consent) == []
    add(home, [exam_task(5, 66)])
    until(lambda: evolutions(home)[0].state is EvolutionState.PROBATION, "it is promoted")
    assert source(home) == RIGHT
    (consent,) = reader.find(Consent)
    assert consent.principal == "policy:medium=auto"
    fresh = [trial for trial in reader.find(Trial) if trial.set is TrialSet.FRESH]
    assert len(fresh) == 6
    assert known.id not in {trial.task_id for trial in fresh}
    for command in (["evolution", "verify", evolution.id], ["audit", "verify"]):
        done = command_server().run("--home", str(home.root), *command, "--json", env=os.environ)
        assert (done.returncode, json.loads(done.stdout)["faults"]) == (0, [])


def add(home: Home, tasks: list[Task]) -> None:
    with closing(Ledger(home.ledger)) as ledger:
        for task in tasks:
            ledger.add_task(task, Share.OPEN)


def run_again(home: Home, evolution: Evolution) -> None:
    """Every trial, from its record and without a daemon; a record that is gone is told."""
    command = ["--home", str(home.root), "evolution", "verify", evolution.id, "--trials", "--json"]
    done = command_server().run(*command, env=os.environ)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["faults"] == []
    assert found["trials"] == len(Reader(home.ledger).find(Trial)) > 20
    # a record that is not what happened
    reader = Reader(home.ledger)
    trial = reader.find(Trial)[0]
    blob = trial.steps_in
    together = {other.id for other in reader.find(Trial) if other.steps_in == blob}
    assert len(together) > 1
    (home.blobs / blob[:2] / blob[2:]).unlink()
    done = command_server().run(*command, env=os.environ)
    assert done.returncode == 1
    faults = json.loads(done.stdout)["faults"]
    assert {fault.partition(": ")[0] for fault in faults} == together
    assert all("it could not be run again: there is no blob" in fault for fault in faults)


def test_kills_at_random_points_promote_once_and_damage_nothing(daemon: Daemon, home: Home) -> None:
    set_exam(home)
    dice = random.Random(7)
    for _ in range(KILLS):
        daemon.start()
        time.sleep(dice.uniform(0.0, 1.6))  # the point of the kill, not a wait
        daemon.signal(signal.SIGKILL)
        daemon.ended()
    daemon.start()
    until(lambda: ended(home), "the evolution has ended", 180)
    daemon.signal(signal.SIGTERM)
    assert daemon.ended() == 0

    (evolution,) = evolutions(home)
    assert evolution.state is EvolutionState.PROBATION, evolution.reason
    registry = Registry(home.registry)
    assert [version.origin for version in registry.versions(SKILL)].count("evolution") == 1
    with offline_context(home) as parts:
        (verdict,) = [item for item in parts.records.find(Verdict) if item.decision is Decision.PROMOTE]
        candidate = parts.records.get(Candidate, verdict.candidate_id)
        rates = rates_of(parts, candidate)
        assert len(rates) == 4, "measured once, whatever was killed"
        assert recompute(verdict, candidate, trials_of(parts, candidate), parts.policy, rates=rates) == []
    assert registry.stable().tree == verdict.candidate_tree == candidate.snapshot.tree
    assert Reader(home.ledger).verify() == []
    assert [finding.what for finding in examine(home, fix=False, full=True)] == []


def test_one_failure_waits_and_a_flag_makes_it_evidence(daemon: Daemon, home: Home) -> None:
    (task,) = set_exam(home, pairs=((50, 50), (60, 50), (10, 50)))
    daemon.start()
    reader = Reader(home.ledger)
    until(lambda: reader.find(Sighting), "the failure was mined")
    assert evolutions(home) == []
    with offline_context(home) as parts:
        flag(parts, reader.runs(task.id)[0])
    until(lambda: evolutions(home), "the flag opened an evolution")


def test_only_a_token_of_this_home_promotes(served: Daemon, waiting: Exam) -> None:
    home = waiting.home
    ledger = Ledger(home.ledger)
    (evolution,) = evolutions(home)
    assert evolution.state is EvolutionState.AWAITING_CONSENT
    (verdict,) = [item for item in ledger.find(Verdict) if item.decision is Decision.PROMOTE]
    candidate = ledger.get(Candidate, verdict.candidate_id)
    later = datetime.now(UTC) + timedelta(hours=1)
    # a row in the ledger is not enough: this is what code with write access to it, but no key, could do
    forged = issue(bytes(32), candidate, verdict, Approval("person:mallory", later))
    ledger.put(forged)
    log = home.logs / "daemon.log"
    until(lambda: "was not issued by this home" in log.read_text(), "the forgery is refused")
    assert source(home) == FAULTY
    with offline_context(home) as parts:
        approve(parts, parts.evolution(evolution.id), "person:ada")
    until(lambda: source(home) == RIGHT, "the real one promotes")
    assert len(ledger.find(Consent)) == 2
    ledger.close()


def _result(reader: Reader, task: Task) -> Result | None:
    runs = reader.runs(task.id)
    return runs[0].outcome.result if runs and runs[0].outcome else None
