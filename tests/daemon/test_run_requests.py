"""How the asks of one run come to their end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from agentos.daemon.job.bundle import Bundle
from agentos.daemon.requests.run_requests import (
    RequestDispatcher,
    RequestHandler,
    RunContext,
    RunSpending,
)
from agentos.domain import Budget, Cost, Json, Limits, Snapshot, Step, Task
from agentos.errors import Unavailable
from agentos.ports import Plan

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Handler(RequestHandler):
    """Notes its end, at which it may fail."""

    def __init__(self, name: str, ended: list[str], *, fails: bool) -> None:
        self._name, self._ended, self._fails = name, ended, fails

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
        return {}

    def close(self) -> None:
        self._ended.append(self._name)
        if self._fails:
            raise Unavailable("it would not go")


def test_what_fails_at_its_end_leaves_nothing_of_the_others_open() -> None:
    limits, ended = Limits(), list[str]()
    task = Task("task", "", "", None, (), "default", limits, (), (), None, NOW)
    asking = RunContext(
        run_id="run",
        task=task,
        snapshot=Snapshot("", ""),
        plan=Plan(),
        bundle=Bundle({}, "", limits),
        deadline=time.monotonic() + 60,
        step=lambda node, action, seen, ms: Step("run", 0, node, action, seen, None, NOW, ms),
        spent=RunSpending(),
    )
    handlers = {
        name: (lambda _, name=name: Handler(name, ended, fails=name != "fetch"))
        for name in ("tool", "fetch", "model")
    }
    desk = RequestDispatcher(asking, handlers, lambda answer: None, lambda: None)
    for name in handlers:
        desk.answerer(name)
    with pytest.raises(Unavailable):
        desk.close()
    assert sorted(ended) == ["fetch", "model", "tool"]


def test_a_call_of_unknown_price_lifts_no_limit_of_dollars() -> None:
    spent, budget = RunSpending(), Budget(usd=1.0)
    spent.merge(Cost(usd=0.75, calls=1))
    spent.merge(Cost(usd=None, calls=1))
    assert spent.usd is None
    assert spent.left_of(budget).usd == pytest.approx(0.25)
    spent.merge(Cost(usd=0.25, calls=1))
    assert spent.reached(budget) == "usd"


def test_what_a_run_below_used_in_an_attempt_before_counts_against_the_limits_and_is_not_paid_again() -> None:
    spent, budget = RunSpending(), Budget(calls=9, tokens=100, usd=1.0)
    spent.merge_earlier(Cost(tokens=60, usd=0.75, calls=3, live_calls=3))
    assert spent.onto(Cost()) == Cost(tokens=0, usd=0.0, calls=3, live_calls=0)
    assert spent.left_of(budget) == Budget(calls=6, tokens=40, usd=0.25)
    spent.merge(Cost(tokens=40, usd=0.0, calls=1, live_calls=1))
    assert spent.reached(budget) == "tokens"


def test_what_is_left_is_never_none_at_all_and_no_limit_stays_none() -> None:
    spent = RunSpending()
    spent.merge(Cost(tokens=500, usd=3.0, calls=7))
    assert spent.left_of(Budget(calls=7, tokens=400, usd=2.0)) == Budget(calls=1, tokens=1, usd=1e-6)
    assert spent.left_of(Budget()) == Budget()
