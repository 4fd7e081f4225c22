"""Budgets hold before a call is made, also for calls side by side."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentos.domain import Budget, Mode, ModelSpec, Price
from agentos.errors import ModelFailed
from agentos.gateway.calls import CallReading, CallRecord, CallTotals
from agentos.gateway.client import GatewaySession
from agentos.gateway.sessions import BudgetAccount, reserve
from agentos.gateway.speed import CallTiming
from agentos.models.stop import let_models_go_on, stop_models
from tests.gateway.conftest import Bench, asking, within
from tests.gateway.test_speed import row
from tests.refusals import raises

Paid = Callable[[], int]


def kind_of(session: GatewaySession, text: str, within_s: float = 170.0, **more: int) -> str:
    try:
        session.complete(asking(text, **more), within(within_s))
    except ModelFailed as error:
        return error.kind
    return "answered"


def side_by_side(session: GatewaySession, count: int, within_s: float = 170.0, **more: int) -> Counter[str]:
    def ask(number: int) -> str:
        return kind_of(session, f"slow call {number}", within_s, **more)

    with ThreadPoolExecutor(count) as pool:
        return Counter(pool.map(ask, range(count)))


@pytest.mark.slow
def test_sixteen_calls_side_by_side_with_a_budget_of_five_make_exactly_five(bench: Bench, paid: Paid) -> None:
    session = bench.open(budget=Budget(calls=5))
    assert side_by_side(session, 16) == {"answered": 5, "budget": 11}
    assert paid() == 5
    assert kind_of(session, "one more") == "budget"


@pytest.mark.slow
def test_tokens_are_reserved_for_calls_under_way(bench: Bench, paid: Paid) -> None:
    session = bench.open(budget=Budget(tokens=1000))
    assert side_by_side(session, 16, max_tokens=300)["answered"] <= 3
    assert paid() <= 3
    assert kind_of(session, "small", max_tokens=100) == "answered"  # what was not used was given back


@pytest.mark.slow
def test_money_is_counted_where_the_price_is_known(bench: Bench, paid: Paid) -> None:
    dear = ModelSpec("dear", "openai/scripted", "local", {"max_tokens": 10}, price=Price(0.0, 100_000.0))
    session = bench.open(budget=Budget(usd=3.5), specs=(dear,))  # ten tokens are a dollar
    assert side_by_side(session, 8)["answered"] <= 3
    assert paid() <= 3


@pytest.mark.parametrize("price", [None, Price(0.0, 1.0)])
@pytest.mark.slow
def test_money_is_reserved_for_the_dearest_that_may_answer(
    bench: Bench, paid: Paid, price: Price | None
) -> None:
    dear = ModelSpec("dear", "openai/scripted", "local", {}, price=Price(0.0, 100_000.0))
    away = ModelSpec("away", "openai/nobody", "away", {"max_tokens": 10}, fallbacks=(dear,), price=price)
    session = bench.open(budget=Budget(usd=3.5), specs=(away,))  # ten tokens of the fallback are a dollar
    assert kind_of(bench.open(), "is it up") == "answered"
    assert side_by_side(session, 8, within_s=12.0)["answered"] in (1, 2, 3)
    assert paid() <= 4


def test_an_unknown_price_is_no_price_of_zero_and_leaves_it_to_the_tokens(bench: Bench) -> None:
    session = bench.open(budget=Budget(usd=0.0001, tokens=400))
    assert kind_of(session, "unknown", max_tokens=100) == "answered"
    assert kind_of(session, "too long", max_tokens=1000) == "budget"


def test_the_budget_of_a_run_outlives_its_grant(bench: Bench, paid: Paid) -> None:
    run = bench.new_run()
    assert kind_of(bench.open(run, budget=Budget(calls=2)), "a") == "answered"
    session = bench.open(run, budget=Budget(calls=2))
    assert [kind_of(session, text) for text in ("a", "b", "c")] == ["answered", "answered", "budget"]
    assert paid() == 2  # "a" was served


def test_an_attempt_that_goes_on_from_one_that_was_cut_has_what_that_left(bench: Bench, paid: Paid) -> None:
    cut, budget = bench.new_run(), Budget(calls=4)
    session = bench.open(cut, budget=budget)
    assert [kind_of(session, text) for text in "abc"] == ["answered"] * 3
    another = bench.open(recordings=(cut,), budget=budget)
    assert [kind_of(another, text) for text in "abcxy"] == ["answered"] * 5
    again = bench.open(recordings=(cut,), budget=budget, goes_on=True)
    assert [kind_of(again, text) for text in "abcde"] == ["answered"] * 4 + ["budget"]
    assert paid() == 6


def test_what_is_served_costs_nothing(bench: Bench) -> None:
    run = bench.new_run()
    session = bench.open(run)
    for text in ("a", "b", "c"):
        session.complete(asking(text), within())
    trial = bench.open(mode=Mode.REPLAY, recordings=(run,), budget=Budget(calls=1))
    assert [kind_of(trial, text) for text in ("a", "b", "c")] == ["answered"] * 3


def test_a_call_that_was_sent_before_is_not_booked_twice(bench: Bench) -> None:
    run = bench.new_run()
    session = bench.open(run, budget=Budget(calls=1))
    bench.server.fault_next("unauthorized")
    assert kind_of(session, "once") == "auth"
    assert kind_of(session, "once") == "answered"
    assert kind_of(session, "twice") == "budget"


def test_seconds_are_those_that_models_took(bench: Bench) -> None:
    session = bench.open(budget=Budget(seconds=0.0001))
    assert kind_of(session, "first") == "answered"
    assert kind_of(session, "second") == "budget"


def test_a_day_and_an_evolution_have_accounts_of_their_own() -> None:
    run = BudgetAccount("budget", "the run", "…", Budget(), CallTotals())
    day = BudgetAccount("day_budget", "all runs of a day", "wait", Budget(usd=1.0), CallTotals(usd=0.5))
    hold = reserve([(run, CallTotals()), (day, CallTotals())], CallTotals(1, 10, 0.4))
    with raises(ModelFailed, "day_budget", message="budget.of_a_day"):
        reserve([(run, CallTotals()), (day, CallTotals())], CallTotals(1, 10, 0.4))
    assert run.held == CallTotals(1, 10, 0.4)  # all or none
    hold.settle(CallTotals(1, 7, 0.1, 2.0))
    assert (day.held, day.used) == (CallTotals(), CallTotals(1, 7, pytest.approx(0.6), 2.0))
    reserve([(run, CallTotals()), (day, CallTotals())], CallTotals(1, 10, 0.4)).settle(None)
    assert day.used.calls == 1


def test_a_day_pays_for_its_own_calls_and_not_for_those_of_a_clock_that_was_ahead(tmp_path: Path) -> None:
    midnight = 1_790_000_000.0 // 86_400 * 86_400
    record = CallRecord(tmp_path / "calls.db")
    for number, day in enumerate((-1, 0, 1, 3650)):
        call = row(number, CallTiming(10, 10, 1.0), started_at=midnight + 86_400 * day)
        asyncio.run(record.put(call))
    record.close()
    reading = CallReading(tmp_path / "calls.db")
    assert reading.spent(midnight=midnight).calls == 1
    assert [one.calls for one in reading.models_on(midnight)] == [1]
    reading.close()


def test_an_evolution_shares_one_budget_among_its_trials(bench: Bench) -> None:
    dear = ModelSpec("dear", "openai/scripted", "local", {"max_tokens": 6}, price=Price(0.0, 1_000_000.0))
    answers = [
        kind_of(bench.open(specs=(dear,), evolution_id="evo-1", budget=Budget(usd=100.0)), f"trial {number}")
        for number in range(3)
    ]
    # each reserves 6 dollars of the 10, and uses as many as it says words
    assert answers[0] == "answered"
    assert answers[-1] == "evolution_budget"


def test_an_evolution_may_be_held_to_calls_too(bench: Bench) -> None:
    sessions = [bench.open(evolution_id="evo-2") for _ in range(5)]
    answers = [kind_of(session, f"trial {number}") for number, session in enumerate(sessions)]
    assert answers == ["answered"] * 4 + ["evolution_budget"]


def test_stopped_calls_are_not_begun_also_in_a_run_that_goes_on(bench: Bench, paid: Paid) -> None:
    session = bench.open()
    assert kind_of(session, "before") == "answered"
    try:
        stop_models(bench.home, "person:ann(1)", "too dear")
        assert kind_of(session, "while stopped") == "unreachable"
        assert kind_of(bench.open(), "another run") == "unreachable"
        (bench.home.root / "models.stopped").write_text("{")  # what cannot be read stops them, too
        assert kind_of(session, "damaged") == "unreachable"
    finally:
        let_models_go_on(bench.home)
    assert paid() == 1
    assert kind_of(session, "after") == "answered"
