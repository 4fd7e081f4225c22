"""A worker that gives other answers than others do is found, if its trials are checked; an honest one is not blamed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from agentos.daemon.control.workers import Trust
from agentos.daemon.run.trial_execution import SpotCheckedExecutor
from agentos.domain import Mode, Result, Snapshot, Step, Task
from agentos.errors import HostAway, HostLost
from agentos.ledger.store import Ledger
from agentos.ports import Attempt, Plan
from agentos.testing import attempt

SNAPSHOT = Snapshot("c" * 40, "t" * 40)
TRIAL = Plan(evolution_id="evo-1", pair="evo-1 task 0")


@dataclass
class Hosts:
    """An executor whose hosts answer as they were told; ``order`` is who is asked first."""

    order: tuple[str, ...]
    answers: dict[str, Callable[[], str]]
    asked: list[str] = field(default_factory=list)

    def execute(
        self, task: Task, snapshot: Snapshot, run_id: str, on_step: Any = None, plan: Plan | None = None
    ) -> Attempt:
        free = [host for host in self.order if plan is None or host not in plan.avoid]
        if not free:
            raise HostAway("nobody else")
        self.asked.append(free[0])
        return replace(attempt(passed=True), host=free[0], answer_sha256=self.answers[free[0]]())

    def given(self, task: Task, snapshot: Snapshot) -> str:
        return ""


def steady(answer: str) -> Callable[[], str]:
    return lambda: answer


def varying(first: int) -> Callable[[], str]:
    said = iter(f"{number}" for number in range(first, first + 50))
    return lambda: next(said)


@pytest.fixture
def trust(ledger: Ledger) -> Trust:
    return Trust(ledger)


def check(
    hosts: Hosts, trust: Trust, make_task: Any, plan: Plan | None = TRIAL, share: float = 1.0
) -> Attempt:
    return SpotCheckedExecutor(hosts, trust, share).execute(
        make_task("double"), SNAPSHOT, "trial-1", plan=plan
    )


def test_a_worker_that_lies_is_found_by_this_machine(trust: Trust, ledger: Ledger, make_task: Any) -> None:
    hosts = Hosts(("liar", ""), {"liar": steady("forged"), "": steady("true")})
    with pytest.raises(HostLost):
        check(hosts, trust, make_task)
    assert hosts.asked == ["liar", "", ""]
    assert trust.of("liar")
    assert Trust(ledger).of("liar")  # the next daemon knows it too
    assert not trust.of("another")
    (noted,) = [entry for entry in ledger.entries() if entry.event == "worker.distrusted"]
    assert noted.subject == "liar"


def test_of_workers_alone_two_are_believed_against_one(trust: Trust, make_task: Any) -> None:
    hosts = Hosts(("liar", "one", "two"), {"liar": steady("x"), "one": steady("y"), "two": steady("y")})
    with pytest.raises(HostLost):
        check(hosts, trust, make_task)
    assert trust.of("liar")


def test_a_liar_that_is_asked_to_check_others_is_found_instead(trust: Trust, make_task: Any) -> None:
    hosts = Hosts(("one", "liar", "two"), {"liar": steady("x"), "one": steady("y"), "two": steady("y")})
    assert check(hosts, trust, make_task).answer_sha256 == "y"
    assert (bool(trust.of("liar")), trust.of("one"), trust.of("two")) == (True, "", "")


@pytest.mark.parametrize(
    ("order", "answers"),
    [
        (("one", ""), {"one": steady("y"), "": steady("y")}),
        (("one", ""), {"one": varying(0), "": varying(50)}),  # work that varies tells nothing
        (("one", "two"), {"one": steady("x"), "two": steady("y")}),  # one word against another
        (("one",), {"one": steady("x")}),
    ],
    ids=["honest", "varying", "two alone", "one alone"],
)
def test_nobody_is_blamed_where_nothing_can_be_told(
    order: tuple[str, ...], answers: dict[str, Callable[[], str]], trust: Trust, make_task: Any
) -> None:
    check(Hosts(order, answers), trust, make_task)
    assert (trust.of("one"), trust.of("two")) == ("", "")


@pytest.mark.parametrize(
    ("plan", "share"), [(None, 1.0), (Plan(), 1.0), (TRIAL, 0.0)], ids=["no plan", "a live run", "no share"]
)
def test_only_so_many_trials_are_made_again(
    trust: Trust, make_task: Any, plan: Plan | None, share: float
) -> None:
    hosts = Hosts(("liar", ""), {"liar": steady("x"), "": steady("y")})
    check(hosts, trust, make_task, plan, share)
    assert hosts.asked == ["liar"]


@pytest.mark.parametrize(
    ("plan", "every"), [(Plan(mode=Mode.REPLAY), False), (Plan(), True)], ids=["last look", "probe beside"]
)
def test_what_a_promotion_waits_for_is_made_again_too(
    trust: Trust, make_task: Any, plan: Plan, every: bool
) -> None:
    hosts = Hosts(("liar", ""), {"liar": steady("x"), "": steady("y")})
    with pytest.raises(HostLost):
        SpotCheckedExecutor(hosts, trust, 1.0, every).execute(make_task("double"), SNAPSHOT, "p", plan=plan)
    assert trust.of("liar")


def test_the_share_is_kept_and_cannot_be_foreseen(trust: Trust, ledger: Ledger, make_task: Any) -> None:
    def chosen(by: Trust) -> list[bool]:
        checked = SpotCheckedExecutor(Hosts((), {}), by, 0.2)
        return [checked._is_chosen(f"trial-{number}") for number in range(2000)]

    first, other = chosen(trust), chosen(Trust(ledger))
    assert 300 < sum(first) < 500
    assert first != other


def test_what_asked_a_model_or_says_nothing_of_the_code_is_passed_over(trust: Trust, make_task: Any) -> None:
    hosts = Hosts(("one", ""), {"one": steady("x"), "": steady("y")})
    plain = hosts.execute

    def asked(*given: Any, **more: Any) -> Attempt:
        step = Step("trial-1", 0, "model", {}, {}, None, make_task("double").created_at, 1.0)
        return replace(plain(*given, **more), steps=(step,))

    hosts.execute = asked  # type: ignore[method-assign]
    check(hosts, trust, make_task)
    hosts.execute = lambda *given, **more: replace(  # type: ignore[method-assign]
        plain(*given, **more), outcome=replace(attempt(passed=False).outcome, result=Result.TIMEOUT)
    )
    check(hosts, trust, make_task)
    assert hosts.asked == ["one", "one"]
