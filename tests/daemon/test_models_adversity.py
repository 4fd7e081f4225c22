"""The provider is away, the disk is full, a budget ends amid parallel calls: what is paid and what is lost."""

from __future__ import annotations

import signal
import subprocess
from typing import Any

import pytest

from agentos.domain import Json, Limits, Result, Share, TaskState
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.testing import call, say
from agentos.testing.modelserver.replies import ServerReply
from tests.daemon.conftest import Daemon
from tests.daemon.thinking_world import KEY, KEY_ENV, agent, free_task, scripted, world

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

TURNS = 4


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)


def test_a_provider_that_is_away_for_a_while_costs_an_attempt_and_no_call(
    home: Home, ledger: Ledger, daemon: Any, until: Any
) -> None:
    with world(home, scripted()) as (server, seen):
        daemon.start()
        task = free_task(f"[work 1 {TURNS}]")
        ledger.add_task(task, Share.OPEN)
        until(lambda: server.paid >= 1, "it asks", 60)
        server.fault_next("overloaded", times=7)  # one attempt gives up after five tries
        until(lambda: ledger.task_view(task.id).state is TaskState.DONE, "it is done", 90)
        newest, *lost = ledger.runs(task.id)
        assert newest.outcome is not None
        assert newest.outcome.result is Result.PASSED
        assert [run.outcome.result for run in lost if run.outcome] == [Result.INFRA]
        assert "no model could be asked (overloaded)" in lost[0].outcome.reason  # type: ignore[union-attr]
        assert server.paid == TURNS + 1
        assert set(seen.values()) == {1}
        cost = newest.outcome.cost
        assert cost.calls == TURNS + 1
        assert cost.live_calls < cost.calls


def test_a_disk_that_fills_up_in_the_middle_loses_no_call_and_no_task(tiny_home: Home, until: Any) -> None:
    ledger, daemon = Ledger(tiny_home.ledger), Daemon(tiny_home)
    filler = tiny_home.root.parent / "filler"
    with world(tiny_home, scripted(delay=lambda: 0.2)) as (server, seen):
        try:
            daemon.start()
            task = free_task(f"[work 1 {2 * TURNS}]")
            ledger.add_task(task, Share.OPEN)
            until(lambda: server.paid >= 2, "it asks", 60)
            subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], stderr=subprocess.DEVNULL)
            until(lambda: _stands_still(tiny_home), "somebody notices", 30)
            filler.unlink()
            until(lambda: ledger.task_view(task.id).state is TaskState.DONE, "it is done", 90)
            newest, *lost = ledger.runs(task.id)
            assert newest.outcome is not None
            assert newest.outcome.result is Result.PASSED, (newest.outcome, lost)
            assert server.paid == 2 * TURNS + 1
            assert max(seen.values()) == 1
            assert ledger.verify() == []
            daemon.signal(signal.SIGTERM)
            assert daemon.ended() == 0
        finally:
            daemon.close()
            ledger.close()


def _stands_still(home: Home) -> bool:
    said = (home.logs / "daemon.log").read_text()
    return "full" in said or "cannot be recorded" in said


PARALLEL = b"""
import json, os, urllib.error, urllib.request
from concurrent.futures import ThreadPoolExecutor

def ask(number):
    body = {"messages": [{"role": "user", "content": f"[echo {number}]"}]}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["choices"][0]["message"]["content"]
    except (urllib.error.HTTPError, OSError) as error:
        return f"error {error}"

with ThreadPoolExecutor(12) as pool:
    print(json.dumps(list(pool.map(ask, range(12)))))
"""


def test_a_budget_that_ends_amid_parallel_calls_lets_not_one_more_through(
    home: Home, ledger: Ledger, daemon: Any, until: Any
) -> None:
    def policy(request: Json, number: int) -> ServerReply:
        return say(request["messages"][-1]["content"], delay_s=0.2)

    with world(home, policy) as (server, _):
        files = {
            "harness/parallel/resource.toml": b'description = "x"\ncommand = ["{python}", "{harness}/ask.py"]\n',
            "harness/parallel/ask.py": PARALLEL,
            **agent("parallel", harness="parallel"),
        }
        Registry(home.registry).commit(files, "A program that asks in parallel", "edit")
        daemon.start()
        tasks = [
            free_task("many", agent="parallel", limits=Limits(wall_s=60.0, calls=calls)) for calls in (5, 0)
        ]
        for task in tasks:
            ledger.add_task(task, Share.OPEN)
        until(lambda: len(ledger.tasks(TaskState.DONE)) == 2, "both are done", 60)
        short, enough = (ledger.runs(task.id)[0] for task in tasks)
        assert short.outcome is not None
        assert short.outcome.result is Result.BUDGET, short.outcome
        assert enough.outcome is not None
        assert enough.outcome.result is Result.PASSED, enough.outcome
        assert sorted(enough.answer) == sorted(f"[echo {number}]" for number in range(12))
        assert server.paid == 5 + 12


def test_a_model_that_is_silent_for_long_is_a_timeout_that_is_paid_once(
    home: Home, ledger: Ledger, daemon: Any, until: Any
) -> None:
    def policy(request: Json, number: int) -> ServerReply:
        return say("ok", delay_s=60.0 if "silent" in str(request["messages"]) else 0.0)

    with world(home, policy) as (server, _):
        daemon.start()
        ledger.add_task(free_task("answer"), Share.OPEN)  # so that the gateway is up
        until(lambda: ledger.tasks(TaskState.DONE), "a model that answers is heard", 60)
        task = free_task("be silent", limits=Limits(wall_s=8.0))
        ledger.add_task(task, Share.OPEN)
        until(lambda: ledger.task_view(task.id).state is TaskState.DONE, "it is done", 40)
        (run,) = ledger.runs(task.id)
        assert run.outcome is not None
        assert run.outcome.result is Result.TIMEOUT, run.outcome
        assert "had no answer" in run.outcome.reason, "and says what to do"
        assert [each.outcome for each in server.requests] == ["paid", "paid"], "asked once each"
        used = ledger.steps(run.id)[-1].observation["usage"]
        assert used["estimated"] is True, "what was sent is paid, though nobody says how much"
        assert used["input_tokens"] > 0
        cost = run.outcome.cost
        assert (cost.calls, cost.tokens) == (1, used["input_tokens"] + used["output_tokens"])


def test_a_run_that_has_few_tokens_left_still_gives_what_it_has(
    home: Home, ledger: Ledger, daemon: Any, until: Any
) -> None:
    """A call reserves as much as may be answered: where that was 8,192 tokens each time, no last word had room."""

    def policy(request: Json, number: int) -> ServerReply:
        return call("look", {"text": f"{number}"}) if request.get("tools") else say("what I have")

    with world(home, policy) as (server, _):
        daemon.start()
        task = free_task("look around", limits=Limits(wall_s=60.0, tokens=20_000))
        ledger.add_task(task, Share.OPEN)
        until(lambda: ledger.task_view(task.id).state is TaskState.DONE, "it is done", 60)
        (run,) = ledger.runs(task.id)
        assert run.answer == "what I have", (run.outcome, server.paid)
        assert run.outcome is not None
        assert run.outcome.cost.tokens <= 20_000
