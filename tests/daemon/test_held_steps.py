"""Steps that wait for others are written in time, and none is lost but by a kill."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agentos.daemon.run import tasks
from agentos.daemon.run.conversation import KERNEL_NODES
from agentos.daemon.run.tasks import HELD_MAX, HeldSteps, StopSignal, TaskRunner
from agentos.domain import Result, Run, Share, Snapshot, Step, Task
from agentos.errors import Conflict, Unavailable
from agentos.ledger.store import Ledger
from agentos.ports import Attempt, Plan
from agentos.testing.registry import attempt
from tests.daemon.test_tasks import ACT, NOW, Snapshots


def step(index: int, node: str = "act", run_id: str = "run-1") -> Step:
    return Step(run_id, index, node, ACT, {"ok": True, "output": {"n": index}}, None, NOW, 1.0)


@pytest.fixture
def written() -> list[list[int]]:
    return []


@pytest.fixture
def held(written: list[list[int]]) -> HeldSteps:
    return HeldSteps(lambda steps: written.append([item.index for item in steps]), KERNEL_NODES)


def test_what_stays_in_the_box_waits(held: HeldSteps, written: list[list[int]]) -> None:
    for index in range(5):
        held.add(step(index))
    held.write_old()
    assert written == []
    assert [item.index for item in held.left()] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("node", sorted(KERNEL_NODES))
def test_what_the_kernel_saw_is_on_disk_with_all_before_it(
    held: HeldSteps, written: list[list[int]], node: str
) -> None:
    held.add(step(0))
    held.add(step(1, node))
    assert written == [[0, 1]]
    assert not held.left()


def test_none_waits_for_long(
    held: HeldSteps, written: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    held.add(step(0))
    monkeypatch.setattr(tasks, "HELD_S", 0.0)
    held.write_old()
    held.add(step(1))
    assert written == [[0], [1]]


def test_there_are_never_many(held: HeldSteps, written: list[list[int]]) -> None:
    for index in range(HELD_MAX + 1):
        held.add(step(index))
    assert written == [list(range(HELD_MAX))]


def test_what_could_not_be_written_stays() -> None:
    def full(steps: Sequence[Step]) -> None:
        raise Unavailable("the disk is full")

    held = HeldSteps(full, KERNEL_NODES)
    held.add(step(0))
    with pytest.raises(Unavailable):
        held.add(step(1, "external"))
    assert [item.index for item in held.left()] == [0, 1]


class Box:
    """Makes three steps and then does what it is told; ``seen`` is what was on disk before that."""

    name, level = "fake", "none"

    def __init__(self, ledger: Ledger, then: Callable[[], Attempt], last: str = "act") -> None:
        self.ledger, self.then, self.last = ledger, then, last
        self.seen: list[str] = []

    def place(self, task: Task, snapshot: Snapshot) -> Box:
        return self

    def execute(
        self, task: Task, snapshot: Snapshot, run_id: str, on_step: Any = None, plan: Plan | None = None
    ) -> Attempt:
        for index, node in enumerate(("route", "act", self.last)):
            on_step(step(index, node, run_id))
        self.seen = [item.node for item in self.ledger.steps(run_id)]
        return self.then()


def attempted(ledger: Ledger, task: Task, box: Box) -> TaskRunner:
    made = TaskRunner(ledger, Snapshots(), box, StopSignal())  # type: ignore[arg-type] # scripted
    made.attempt(task.id, NOW)
    return made


@pytest.fixture
def called(make_task: Callable[..., Task], add: Callable[[Task], Task]) -> Task:
    return add(make_task("double", n=1))


def nodes(ledger: Ledger, task: Task) -> list[str]:
    (run,) = ledger.runs(task.id)
    return [item.node for item in ledger.steps(run.id)]


def test_the_end_of_a_run_takes_them_along(ledger: Ledger, called: Task) -> None:
    box = Box(ledger, lambda: attempt(passed=True))
    attempted(ledger, called, box)
    assert box.seen == []
    assert nodes(ledger, called) == ["route", "act", "act"]
    assert not ledger.verify()


def test_what_acts_outside_is_on_record_before_it_acts(ledger: Ledger, called: Task) -> None:
    box = Box(ledger, lambda: attempt(passed=True), last="external")
    attempted(ledger, called, box)
    assert box.seen == ["route", "act", "external"]


def test_a_run_that_the_machinery_lost_keeps_its_steps(ledger: Ledger, called: Task) -> None:
    def lose() -> Attempt:
        raise Unavailable("the box is gone")

    attempted(ledger, called, Box(ledger, lose))
    assert nodes(ledger, called) == ["route", "act", "act"]


def test_so_does_one_whose_end_could_not_be_stored_at_once(ledger: Ledger, called: Task) -> None:
    def bug() -> Attempt:
        raise ZeroDivisionError

    box = Box(ledger, bug)
    made = TaskRunner(ledger, Snapshots(), box, StopSignal())  # type: ignore[arg-type] # scripted
    with pytest.raises(ZeroDivisionError):
        made.attempt(called.id, NOW)
    assert nodes(ledger, called) == []
    box.then = lambda: attempt(passed=True)
    assert made.attempt(called.id, NOW)
    lost = ledger.runs(called.id)[1]
    assert lost.outcome is not None
    assert lost.outcome.result is Result.INFRA
    assert [item.node for item in ledger.steps(lost.id)] == ["route", "act", "act"]


def test_a_run_that_goes_on_is_seen(ledger: Ledger, called: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def look() -> Attempt:
        monkeypatch.setattr(tasks, "HELD_S", 0.0)
        made.write_old_steps()
        seen.append(nodes(ledger, called))
        return attempt(passed=True)

    made = TaskRunner(ledger, Snapshots(), Box(ledger, look), StopSignal())  # type: ignore[arg-type] # scripted
    made.attempt(called.id, NOW)
    assert seen == [["route", "act", "act"]] == [nodes(ledger, called)]


def test_a_run_of_a_model_writes_each_step_at_once(
    ledger: Ledger, make_task: Callable[..., Task], add: Callable[[Task], Task]
) -> None:
    free = add(replace(make_task("double", n=1), call=None))
    box = Box(ledger, lambda: attempt(passed=True))
    attempted(ledger, free, box)
    assert box.seen == ["route", "act", "act"]


def test_steps_are_one_transaction(ledger: Ledger, called: Task) -> None:
    """The second of two cannot be stored: neither is the first."""
    attempted(ledger, called, Box(ledger, lambda: attempt(passed=True)))
    (run,) = ledger.runs(called.id)
    with pytest.raises(Conflict):
        ledger.append_steps((step(1, "act", run.id), step(3, "act", run.id)))
    assert len(ledger.steps(run.id)) == 3


def begun(ledger: Ledger, task: Task) -> str:
    run = Run(f"run-{task.id}", task.id, task.key, Share.OPEN, 1, Snapshot("c", "t"), "fake", "none", NOW)
    ledger.begin_run(run)
    return run.id


def test_steps_of_several_runs_and_the_same_again_are_stored_once(
    ledger: Ledger, add: Callable[[Task], Task], make_task: Callable[..., Task]
) -> None:
    one, other = (begun(ledger, add(make_task("double", n=number))) for number in (1, 2))
    both = (step(0, "route", one), step(0, "route", other), step(2, "act", one), step(2, "act", one))
    ledger.append_steps(both)
    ledger.append_steps((*both, step(1, "act", one)))
    assert [(it.index, it.node) for it in ledger.steps(one)] == [(0, "route"), (1, "act"), (2, "act")]
    assert [(it.index, it.node) for it in ledger.steps(other)] == [(0, "route")]
    for wrong in ((step(0, "act", other),), (step(5, "act", other), step(5, "route", other))):
        with pytest.raises(Conflict):
            ledger.append_steps(wrong)
    assert len(ledger.steps(other)) == 1
