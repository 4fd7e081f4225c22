"""A model that is set up, moved or given another key while the daemon runs is known to the next call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from agentos.daemon.service import service
from agentos.domain import Json, Layer, Result, Run, Task
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.settings import load_settings
from agentos.testing import ModelServer
from agentos.testing.modelserver.replies import ServerReply, say
from tests.command_server import command_server

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

KEY, OTHER = "sk-local-0123456789abcdef", "sk-other-0123456789abcdef"


def saying(text: str, delay_s: float = 0.0) -> Callable[[Json, int], ServerReply]:
    return lambda request, number: say(text, delay_s=delay_s)


@pytest.fixture
def first() -> Iterator[ModelServer]:
    with ModelServer(saying("the first", delay_s=2.0)) as server:
        yield server


@pytest.fixture
def second() -> Iterator[ModelServer]:
    with ModelServer(saying(f"the second, which was sent {OTHER}")) as server:
        yield server


def add_model(home: Home, server: ModelServer) -> str:
    """As a person does it; what was said."""
    command = ["--home", str(home.root), "model", "add", "main", "--model", "openai/scripted"]
    options = ["--provider", "local", "--key-env", "CURRENT_KEY", "--api-base", server.base_url]
    done = command_server().run(*command, *options, env=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def keep(home: Home, key: str) -> None:
    home.keys.touch(mode=0o600)
    home.keys.write_text(f'CURRENT_KEY = "{key}"\n')


@pytest.fixture
def ran(home: Home, add: Callable[[Task], Task]) -> Callable[[Task], Run]:
    return lambda task: Reader(home.ledger).runs(task.id)[0]


def test_a_daemon_at_work_learns_of_models(
    daemon: Any,
    home: Home,
    add: Callable[[Task], Task],
    make_task: Callable[..., Task],
    all_done: Any,
    until: Any,
    ran: Callable[[Task], Run],
    first: ModelServer,
    second: ModelServer,
) -> None:
    def think() -> Task:
        made = make_task("double", n=1)
        return add(replace(made, call=None, goal="Say who you are."))

    daemon.start()
    without = think()
    all_done()
    outcome = ran(without).outcome
    assert outcome is not None
    assert outcome.fault is not None
    assert outcome.fault.type == "no_model"

    keep(home, KEY)
    assert "daemon" not in add_model(home, first), "nobody has to restart anything"
    one = think()
    until(lambda: first.requests, "the first is asked", 60)
    keep(home, OTHER)  # while its answer is on its way
    add_model(home, second)
    two = think()
    all_done(60)
    results = [run.outcome.result for run in (ran(one), ran(two)) if run.outcome]
    assert results == [Result.PASSED, Result.PASSED]
    assert ran(one).answer == "the first"
    assert ran(two).answer == "the second, which was sent [redacted:CURRENT_KEY]"
    assert [each.headers["authorization"] for each in (*first.requests, *second.requests)] == [
        f"Bearer {KEY}",
        f"Bearer {OTHER}",
    ]

    with home.settings.open("a") as file:  # what a person has not finished typing changes nothing
        file.write("\n[providers.local\n")
    three = think()
    all_done(60)
    assert ran(three).outcome.result is Result.PASSED  # type: ignore[union-attr]


def test_the_evolver_asks_a_model_from_when_there_is_one(home: Home, first: ModelServer) -> None:
    with service(home, load_settings(home.settings)) as made:

        def names() -> list[str]:
            return [proposer.name for proposer in made.parts.proposers.get(Layer.TOOL, ())]

        assert names() == ["pin", "repair"]
        assert made.parts.proposers.get(Layer.PROMPT) == ()
        add_model(home, first)
        assert names() == ["pin", "repair", "model"]
        assert made.parts.has_model(made.registry.stable(), "default")
