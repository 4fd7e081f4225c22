"""The provider is away, the disk is full, a budget ends amid parallel calls: what is paid and what is lost."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentos.domain import Json, Limits, Result, Share, TaskState
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.testing import call, say
from agentos.testing.modelserver.replies import ServerReply
from tests.daemon.conftest import Daemon, until
from tests.daemon.test_models_whole import ALONE, Place
from tests.daemon.thinking_world import KEY, KEY_ENV, agent, free_task, scripted, world

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

TURNS = 4
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


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)


def policy(request: Json, number: int) -> ServerReply:
    """What the tests of one home ask: each goal has a behaviour of its own."""
    messages = request["messages"]
    said = str(messages)
    if "[echo " in said:
        return say(messages[-1]["content"], delay_s=0.2)
    if "be silent" in said:
        return say("ok", delay_s=60.0)
    if "look around" in said:
        return call("look", {"text": f"{number}"}) if request.get("tools") else say("what I have")
    return scripted()(request, number)


@pytest.fixture(scope="module")
def place(made_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A home at work, for tests that leave it so."""
    home = Home(tmp_path_factory.mktemp("adversity") / "home")
    shutil.copytree(made_home, home.root)
    with pytest.MonkeyPatch.context() as patch, world(home, policy, settings=ALONE) as (server, seen):
        patch.setenv(KEY_ENV, KEY)
        files = {
            "harness/parallel/resource.toml": b'description = "x"\ncommand = ["{python}", "{harness}/ask.py"]\n',
            "harness/parallel/ask.py": PARALLEL,
            **agent("parallel", harness="parallel"),
        }
        Registry(home.registry).commit(files, "A program that asks in parallel", "edit")
        ledger, daemon = Ledger(home.ledger), Daemon(home)
        try:
            yield Place(home, server, seen, ledger, daemon.start())
        finally:
            daemon.close()
            ledger.close()


def test_a_provider_that_is_away_for_a_while_costs_an_attempt_and_no_call(place: Place) -> None:
    ledger, server = place.ledger, place.server
    before = server.paid
    task = free_task(f"[work 1 {TURNS}]")
    ledger.add_task(task, Share.OPEN)
    until(lambda: server.paid > before, "it asks", 60)
    server.fault_next("overloaded", times=7)  # one attempt gives up after five tries
    until(lambda: ledger.task_view(task.id).state is TaskState.DONE, "it is done", 90)
    newest, *lost = ledger.runs(task.id)
    assert newest.outcome is not None
    assert newest.outcome.result is Result.PASSED
    assert [run.outcome.result for run in lost if run.outcome] == [Result.INFRA]
    assert "no model could be asked (overloaded)" in lost[0].outcome.reason  # type: ignore[union-attr]
    assert server.paid - before == TURNS + 1
    assert set(place.seen.values()) == {1}
    cost = newest.outcome.cost
    assert cost.calls == TURNS + 1
    assert cost.live_calls < cost.calls


def test_a_disk_that_fills_up_in_the_middle_loses_no_call_and_no_task(tiny_home: Home) -> None:
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


def test_a_budget_that_ends_amid_parallel_calls_lets_not_one_more_through(place: Place) -> None:
    before = place.server.paid
    tasks = [free_task("many", agent="parallel", limits=Limits(wall_s=60.0, calls=calls)) for calls in (5, 0)]
    short, enough = place.done(*tasks)
    assert short.outcome is not None
    assert short.outcome.result is Result.BUDGET, short.outcome
    assert enough.outcome is not None
    assert enough.outcome.result is Result.PASSED, enough.outcome
    assert sorted(enough.answer) == sorted(f"[echo {number}]" for number in range(12))
    assert place.server.paid - before == 5 + 12


def test_a_model_that_is_silent_for_long_is_a_timeout_that_is_paid_once(place: Place) -> None:
    place.done(free_task("answer"))  # so that the gateway is up
    before = len(place.server.requests)
    (run,) = place.done(free_task("be silent", limits=Limits(wall_s=16.0)))
    assert run.outcome is not None
    assert run.outcome.result is Result.TIMEOUT, run.outcome
    assert "had no answer" in run.outcome.reason, "and says what to do"
    assert [each.outcome for each in place.server.requests[before:]] == ["paid"], "asked once"
    used = place.ledger.steps(run.id)[-1].observation["usage"]
    assert used["estimated"] is True, "what was sent is paid, though nobody says how much"
    assert used["input_tokens"] > 0
    cost = run.outcome.cost
    assert (cost.calls, cost.tokens) == (1, used["input_tokens"] + used["output_tokens"])


def test_a_run_that_has_few_tokens_left_still_gives_what_it_has(place: Place) -> None:
    """A call reserves as much as may be answered: where that was 8,192 tokens each time, no last word had room."""
    (run,) = place.done(free_task("look around", limits=Limits(wall_s=60.0, tokens=20_000)))
    assert run.answer == "what I have", (run.outcome, place.server.paid)
    assert run.outcome is not None
    assert run.outcome.cost.tokens <= 20_000
