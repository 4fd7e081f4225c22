"""Tasks that kill whatever runs them, beside a machine that works: theirs is the fault, in the end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from agentos.daemon.breaker import ALONE_LOSSES, OWN_LOSSES, Breaker
from agentos.daemon.run.tasks import MAX_ATTEMPTS, RunnerOptions, StopSignal, TaskRunner
from agentos.domain import Result, Task, TaskState
from agentos.errors import Unavailable
from agentos.ledger.store import Ledger
from agentos.testing.registry import attempt
from tests.daemon.test_tasks import Executor, Snapshots, results

LOST = Unavailable("the box is gone")
NOW = datetime.now(UTC)


def lost_in_turn(breaker: Breaker, *names: str) -> dict[str, int]:
    """Each is lost, and the machinery found well, until all are told their own fault; how often that took."""
    count = dict.fromkeys(names, 0)
    told: set[str] = set()
    while told < {*names}:
        for name in names:
            count[name] += name not in told
            if not breaker.lost(name, LOST) and count[name] > 1:
                told.add(name)
            breaker.try_again()
    return count


def test_two_bad_tasks_alone_are_told_from_a_bad_machine_after_many_losses() -> None:
    count = lost_in_turn(Breaker(), "a", "b")
    assert set(count.values()) == {ALONE_LOSSES + 1}


def test_where_others_come_to_their_end_it_takes_a_few() -> None:
    breaker = Breaker()
    for _ in range(OWN_LOSSES):
        breaker.lost("a", LOST)
        breaker.lost("b", LOST)
        breaker.try_again()
    breaker.worked("c")
    for name in "abab":
        assert not breaker.lost(name, LOST)
    assert breaker.pause is None, "and nobody waits for them any more"


def test_a_machine_that_its_probe_finds_away_is_nobodys_fault_however_often() -> None:
    def away() -> None:
        raise Unavailable("no sandbox")

    breaker = Breaker(away)
    for _ in range(2 * ALONE_LOSSES):
        assert breaker.lost("a", LOST)


def test_one_that_came_to_its_end_begins_anew() -> None:
    breaker = Breaker()
    for _ in range(OWN_LOSSES):
        breaker.lost("a", LOST)
        breaker.lost("b", LOST)
        breaker.try_again()
    breaker.worked("a")
    breaker.lost("b", LOST)
    assert not breaker.lost("b", LOST)
    breaker.lost("c", LOST)
    assert breaker.lost("a", LOST)


def test_two_poison_tasks_are_given_up_with_a_reason_and_the_others_run(
    ledger: Ledger, make_task: Callable[..., Task], add: Callable[..., Task]
) -> None:
    poison = [add(make_task("double", n=number)) for number in (1, 2)]
    breaker = Breaker()

    class Poisoned(Executor):
        def execute(self, task: Task, *args: Any, **more: Any) -> Any:
            self.script = [LOST if task.id in {one.id for one in poison} else attempt(passed=True)]
            return super().execute(task, *args, **more)

    made = TaskRunner(ledger, Snapshots(), Poisoned([]), StopSignal(), RunnerOptions(breaker=breaker))  # type: ignore[arg-type]
    turns = 0
    while any(ledger.task_view(task.id).state is not TaskState.DONE for task in poison):
        turns += 1
        assert turns < 3 * (OWN_LOSSES + MAX_ATTEMPTS)
        for task in [*poison, add(make_task("double", n=10 + turns))]:
            if ledger.task_view(task.id).state is not TaskState.DONE:
                try:
                    made.attempt(task.id, NOW)
                except Unavailable:
                    breaker.try_again()
    for task in poison:
        assert set(results(ledger, task)) == {Result.INFRA}
        (entry,) = [one for one in ledger.entries(subject=task.id) if one.event == "task.given_up"]
        assert "while the machinery worked" in entry.detail["why"]
        assert "the box is gone" in entry.detail["why"]
