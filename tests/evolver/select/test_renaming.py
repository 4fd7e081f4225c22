"""What identifies a task must not be what an edit goes by: the second trial asks for the same under other names."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import pytest

from agentos.domain import (
    Arm,
    Call,
    Candidate,
    Check,
    EvolutionState,
    InputFile,
    Json,
    Limits,
    Result,
    Share,
    Snapshot,
    Task,
    Trial,
    TrialSet,
    Verdict,
)
from agentos.evolver.cycle import trials_of
from agentos.evolver.replay.verification import run_again
from agentos.evolver.select.renaming import RenamedTask, renamed
from agentos.evolver.verdict.judge import recompute
from agentos.evolver.verdict.pairing import unsteady
from agentos.ports import Attempt
from agentos.testing import FakeExecutor, ScriptedProposer
from agentos.testing import attempt as made
from tests.evolver.conftest import PATH, RESOURCE, World, proposal

KEYS = [hashlib.sha256(bytes([number])).digest() for number in range(5)]
FAULTY = "def answer(points, path, goal):\n    if points > 50:\n        return 'pass'\n    return 'fail'\n"
RIGHT = FAULTY.replace("> 50", "> 40")


@dataclass
class Filed(World):
    """The same world, where a task has an input file and its goal can be read."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.registry = type(self.registry)({PATH: FAULTY, "skill/calc/SKILL.md": "x"})

    def _script(self, task: Task, snapshot: Snapshot) -> Attempt:
        space: dict[str, object] = {}
        exec(self.registry.files(snapshot, PATH)[PATH].decode(), space)
        assert task.call is not None
        assert {item.path for item in task.inputs} == {task.call.args["path"]}
        answer = space["answer"](**task.call.args, goal=task.goal)  # type: ignore[operator]
        done = made(passed=answer == task.checks[0].spec["value"], answer=answer, resources=(RESOURCE,))
        return replace(done, reached=self.labels(snapshot))

    def filed(self, points: int, expected: str, path: str = "sales.csv", share: Share = Share.OPEN) -> None:
        task = self.task(points, expected, share)
        sha256 = self.blobs.put(f"{points}\n".encode())
        call = Call("calc/grade", {"points": points, "path": path})
        task = replace(task, id=f"{task.id}-f", call=call, inputs=(InputFile(path, sha256, 3),))
        self.ledger.add_task(task, share)
        self.live(task, share)


def tried(key: bytes, source: str, faulty: str = FAULTY) -> tuple[Filed, EvolutionState]:
    world = Filed(key=key, proposer=ScriptedProposer([proposal(source)]))
    world.registry = type(world.registry)({PATH: faulty, "skill/calc/SKILL.md": "x"})
    for points in (46, 47, 48):
        world.filed(points, "pass")
    for points, expected in ((90, "pass"), (10, "fail"), *((near, "fail") for near in range(36, 41))):
        world.filed(points, expected)
    return world, world.evolve(world.open()).state


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.hex()[:6])
def test_the_length_of_the_files_name_is_no_constant(key: bytes) -> None:
    """All files of the home have one name, so it is right in every task, shown or hidden."""
    world, state = tried(key, FAULTY.replace("> 50", "> len(path) + 31"))
    assert state is EvolutionState.REJECTED
    (verdict,) = world.ledger.find(Verdict)
    assert "it goes by what identifies a task" in verdict.reasons[0]
    (candidate,) = world.ledger.find(Candidate)
    assert recompute(verdict, candidate, trials_of(world.parts, candidate), world.policy) == []


@pytest.mark.parametrize(
    "condition",
    [
        "points > (40 if path == 'sales.csv' else 50)",
        "points > (40 if path.startswith('s') and len(path) < 10 else 50)",
        "points > (40 if hash(path) == hash('sales' + '.csv') else 50)",
        "points > (40 if goal.startswith('grade') else 50)",
        "points > (40 if str(points) in goal else 50)",
        "points > 60 - len(path) - len(goal)",
    ],
)
@pytest.mark.parametrize("key", KEYS[:2], ids=lambda key: key.hex()[:6])
def test_neither_the_name_of_a_file_nor_the_title_of_a_task_is_one(key: bytes, condition: str) -> None:
    _, state = tried(key, FAULTY.replace("points > 50", condition))
    assert state is EvolutionState.REJECTED


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.hex()[:6])
def test_the_right_edit_is_promoted_and_its_trials_verified(key: bytes) -> None:
    world, state = tried(key, RIGHT)
    assert state is EvolutionState.PROBATION
    trials = world.trials()
    assert {trial.renamed for trial in trials} == {False, True}
    assert all(trial.renamed is (trial.repeat > 0) for trial in trials)
    (evolution,) = {trial.evolution_id for trial in trials}
    assert [item for item in run_again(world.parts, evolution) if item.differences] == []


def test_what_goes_by_names_on_the_base_keeps_them() -> None:
    """A tool whose answer depends on the name: its tasks are tried under their own, and still count."""
    faulty = FAULTY.replace("'fail'\n", "'fail' if len(path) == 9 else 'unknown'\n")
    world, state = tried(KEYS[0], faulty.replace("> 50", "> 40"), faulty)
    assert state is EvolutionState.PROBATION
    of_guards = [trial for trial in world.trials() if trial.set == "guard" and trial.arm is Arm.CANDIDATE]
    ten = next(task for task in world.ledger._tasks.values() if task.name == "10 points" and task.inputs)
    kept = [trial for trial in of_guards if trial.task_id == ten.id]
    assert [trial.renamed for trial in kept] == [False, False]
    assert any(trial.renamed for trial in of_guards)
    (candidate,) = world.ledger.find(Candidate)
    judged = [trial for trial in trials_of(world.parts, candidate) if trial.task_id == ten.id]
    assert not any(trial.renamed for trial in judged), "what the base made of it under others is left out"


@pytest.mark.parametrize("seed", [1, 2, 4])
@pytest.mark.parametrize("condition", ["points > 40", "points > (40 if path == 'sales.csv' else 50)"])
def test_a_repair_that_leaves_a_little_flakiness_is_told_from_one_that_goes_by_names(
    condition: str, seed: int
) -> None:
    """What fails now and then ends otherwise under other names too: pairs under both tell the two apart."""
    world = Filed(
        key=KEYS[0], proposer=ScriptedProposer([proposal(FAULTY.replace("points > 50", condition))])
    )
    for points in (46, 47, 48):
        world.filed(points, "pass")
    for points, expected in ((90, "pass"), (95, "pass"), (10, "fail"), (20, "fail")):
        world.filed(points, expected)
    evolution, script, dice = world.open(), world._script, random.Random(seed)

    def flaky(task: Task, snapshot: Snapshot) -> Attempt:
        done = script(task, snapshot)
        bad = task.call is not None and task.call.args["points"] in (46, 47, 48) and dice.random() < 0.25
        return replace(done, outcome=replace(done.outcome, result=Result.FAILED)) if bad else done

    world.executor = FakeExecutor(flaky)
    ended = world.evolve(evolution)
    (verdict,) = world.ledger.find(Verdict)
    (candidate,) = world.ledger.find(Candidate)
    trials = trials_of(world.parts, candidate)
    assert TrialSet.EVIDENCE in unsteady(trials), "or this test shows nothing"
    if condition == "points > 40":
        assert ended.state is EvolutionState.PROBATION, ended.reason
        before = recompute(verdict, candidate, trials, replace(world.policy, edition=2))
        assert "goes by what identifies" in str(before), "as it was until then"
    else:
        assert ended.promoted is None
    assert recompute(verdict, candidate, trials, world.policy) == []


def test_evidence_that_goes_by_its_names_is_tried_under_them_and_not_in_pairs() -> None:
    faulty = FAULTY.replace("'fail'\n", "'fail' if len(path) == 9 else 'pass'\n")
    world, state = tried(KEYS[0], faulty.replace("> 50", "> 40"), faulty)
    assert state is EvolutionState.PROBATION
    assert not any(trial.number for trial in world.trials())


# --- the names themselves -----------------------------------------------------------------------


def task(
    args: dict[str, Json], checks: tuple[Check, ...] = (), paths: tuple[str, ...] = ("in/sales.csv",)
) -> Task:
    inputs = tuple(InputFile(path, path, 1) for path in paths)
    call = Call("csv-report/sum", args)
    world = World()
    made = world.task(1, "x")
    return replace(made, goal="Sum sales.csv", call=call, inputs=inputs, checks=checks, limits=Limits())


def other(given: Task, contents: str = "", key: bytes = KEYS[0]) -> RenamedTask:
    found = renamed(given, lambda sha256: contents.encode(), key, long=bool(key[0] % 2))
    assert found is not None
    return found


def test_a_file_is_renamed_wherever_it_is_spoken_of() -> None:
    checks = (
        Check("equals", {"value": {"file": "in/sales.csv", "total": 3}}),
        Check("python", {"code": "assert open('in/sales.csv').read() and answer['name'] == 'sales.csv'"}),
        Check("contains", {"value": "read ./in/sales.csv."}),
    )
    given = task({"path": "in/sales.csv", "more": [{"of": "sales.csv"}], "sales.csv": 1}, checks)
    found = other(given)
    path = found.task.inputs[0].path
    name = PurePosixPath(path).name
    assert PurePosixPath(path).parent == PurePosixPath("in")
    assert name.endswith(".csv")
    assert len(name) != len("sales.csv")
    assert found.task.call is not None
    assert found.task.call.args == {"path": path, "more": [{"of": name}], name: 1}
    assert found.task.checks[0].spec == {"value": {"file": path, "total": 3}}
    assert found.task.checks[1].spec["code"] == (
        f"assert open('{path}').read() and answer['name'] == '{name}'"
    )
    assert found.task.checks[2].spec["value"] == f"read ./{path}."
    assert "sales" not in repr((found.task.goal, found.task.name))
    assert found.as_before({"file": path, "names": [name, f"in {path}"], "n": 1}) == {
        "file": "in/sales.csv",
        "names": ["sales.csv", "in in/sales.csv"],
        "n": 1,
    }


@pytest.mark.parametrize(
    ("args", "checks"),
    [
        ({"path": "in/sales.csv", "title": "Sales of March"}, ()),
        ({"path": "in/sales.csv"}, (Check("equals", {"value": "sales"}),)),
        ({"path": "in/sales.csv"}, (Check("python", {"code": "assert answer == 'SALES report'"}),)),
        ({"path": "in/sales.csv", "out": "in/sales.csv.bak"}, ()),
        ({"path": "in/sales.csv", "out": "elsewhere/sales.csv"}, ()),
    ],
)
def test_one_that_is_spoken_of_otherwise_keeps_its_name(
    args: dict[str, Json], checks: tuple[Check, ...]
) -> None:
    given = task(args, checks)
    found = other(given)
    assert found.task.inputs == given.inputs
    assert found.task.call == given.call
    assert found.task.checks == given.checks


def test_so_does_one_that_another_file_speaks_of() -> None:
    given = task({"list": "in/all.txt"}, paths=("in/all.txt", "in/sales.csv"))
    found = other(given, contents="first read sales.csv")
    assert found.task.inputs[1].path == "in/sales.csv"
    assert found.task.inputs[0].path != "in/all.txt"


def test_files_keep_their_order_and_no_two_get_one_name() -> None:
    paths = tuple(f"{letter}{letter}.csv" for letter in "abcdefgh")
    for key in KEYS:
        found = other(task({"folder": "."}, paths=paths), key=key)
        names = [item.path for item in found.task.inputs]
        assert names == sorted(names)
        assert len({*names, *paths}) == 16


def test_names_follow_from_the_key_alone() -> None:
    given = task({"path": "in/sales.csv"})
    assert other(given).task == other(given).task
    names = {
        other(given, key=hashlib.sha256(bytes([number])).digest()).task.inputs[0].path for number in range(20)
    }
    assert len(names) > 10


def test_work_that_a_model_does_is_left_as_it_is() -> None:
    assert renamed(replace(task({}), call=None), lambda sha256: b"", KEYS[0], long=True) is None


def test_a_trial_of_an_earlier_version_was_made_under_its_own_names() -> None:
    assert Trial.__dataclass_fields__["renamed"].default is False
