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
from agentos.domain import Json, Limits, Snapshot, Step, Task
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
