"""Deaths at every moment: no call is lost or paid twice, and nothing is given that is not on record."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentos.domain import Json, Mode
from agentos.errors import ModelFailed
from agentos.gateway.calls import CallReading
from agentos.gateway.client import GatewayModels
from agentos.gateway.setup import Setup, read_ending
from agentos.home import Home
from agentos.testing import ModelServer
from agentos.testing.modelserver.replies import ServerReply, say
from tests.gateway.conftest import KEY, Bench, asking, make_home, said, settings_for, within
from tests.refusals import raises

KILLS = int(os.environ.get("AGENTOS_TEST_KILLS", "2"))  # of the gateway; each start takes three seconds


def until(true: Callable[[], bool], seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def own_gateway(tmp_path: Path, server: ModelServer) -> Iterator[Bench]:
    home = make_home(tmp_path / "home")
    models = GatewayModels(home, settings_for(server, budget={"run_calls": 0}))
    try:
        yield Bench(home, server, models)
    finally:
        models.close()


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_kills_at_random_moments_lose_no_call_and_pay_none_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_TEST_API_KEY", "sk-for-the-killed-0123456789")
    chance = random.Random(4)

    def slowly(request: Json, number: int) -> ServerReply:
        return say(f"{request['messages'][-1]['content']} #{number}", delay_s=chance.random() * 0.05)

    with ModelServer(slowly) as server, own_gateway(tmp_path, server) as bench:
        over = threading.Event()
        asked: list[int] = []

        def run(number: int) -> list[str]:
            run_id, told = f"run-{number}", []
            session = bench.open(run_id)
            while not over.is_set():
                text = f"worker {number} says {len(told) % 7}"  # equal calls come up again and again
                reply = session.complete(asking(text), within(60))
                told.append(said(reply))
                assert told[-1].startswith(text + " #")
                assert not reply.recorded, "it was paid for, and nobody has counted it before"
            asked.append(len(told))
            session.close()
            return told

        with ThreadPoolExecutor(8) as pool:
            runs = [pool.submit(run, number) for number in range(8)]
            try:
                for _ in range(KILLS):
                    before = len(server.requests)
                    until(lambda before=before: len(server.requests) > before + 20)  # type: ignore[misc]
                    time.sleep(chance.random() * 0.1)
                    assert bench.models.pid is not None
                    os.kill(bench.models.pid, signal.SIGKILL)
                before = len(server.requests)
                until(lambda: len(server.requests) > before + 20)
            finally:
                over.set()  # or the runs go on for ever, and the suite with them
            told = {number: job.result(60) for number, job in enumerate(runs)}
        assert server.paid == sum(asked)
        assert all(len(set(texts)) == len(texts) for texts in told.values())  # none was given for two calls
        for number, texts in list(told.items())[:2]:
            replay = bench.open(mode=Mode.REPLAY, recordings=(f"run-{number}",))
            again = [
                said(replay.complete(asking(f"worker {number} says {place % 7}"), within()))
                for place in range(len(texts))
            ]
            assert again == texts
        assert server.paid == sum(asked)


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_killed_attempt_hands_its_call_to_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call was sent and paid, its answer never recorded: the next attempt sends the same key again."""
    monkeypatch.setenv("GATEWAY_TEST_API_KEY", "sk-for-the-killed-0123456789")
    with ModelServer(lambda request, number: say(f"#{number}", delay_s=0.5)) as server:
        with own_gateway(tmp_path, server) as bench:
            session = bench.open("run-a")
            with ThreadPoolExecutor(1) as pool:
                job = pool.submit(session.complete, asking("pay once, run-a"), within())
                until(lambda: server.paid == 1)
                process = bench.models.current()
                bench.models._closed = True  # as when the daemon died with it
                assert process is not None
                process._child.kill()
                with pytest.raises(ModelFailed):
                    job.result(60)
                process._child.wait(60)  # until then its socket may take a connection
            bench.models._closed = False
            second = bench.open("run-b", Mode.RECORD, ("run-a",))
            assert said(second.complete(asking("pay once, run-b"), within())) == "#1"
            assert [row.state for row in bench.calls("run-a")] == ["moved"]
            process, _ = second._opened(within())
            process._child.stdin.close()  # type: ignore[union-attr]  # as when the daemon ends
            until(lambda: not process.alive())  # and close() has nothing left to wait for
        assert (server.paid, server.repeated) == (1, 1)


DAEMON = """
import os, sys, threading, time
from pathlib import Path
from agentos.gateway.client import GatewayModels
from agentos.home import Home
from agentos.ports import Grant
from agentos.domain import Budget, Mode, ModelSpec
from agentos.settings import Settings
models = GatewayModels(Home(Path(sys.argv[1])), Settings(providers={"local": {"api_base": sys.argv[2]}}))
session = models.open(Grant("run-1", Mode.RECORD, (ModelSpec("main", "openai/scripted", "local", {}),), Budget()))
ask = lambda text: session.complete({"messages": [{"role": "user", "content": text}]}, time.monotonic() + 60)
ask("first")
print(models.pid, flush=True)
ask("second")
"""


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.slow
def test_when_the_daemon_dies_calls_under_way_come_to_their_record_and_the_gateway_ends(
    tmp_path: Path,
) -> None:
    home = make_home(tmp_path / "home")
    slow = lambda request, number: say(f"#{number}", delay_s=1.0 if number == 2 else 0.0)  # noqa: E731
    with ModelServer(slow) as server:
        with subprocess.Popen(
            [sys.executable, "-c", DAEMON, str(home.root), server.base_url], stdout=subprocess.PIPE, text=True
        ) as daemon:
            assert daemon.stdout is not None
            pid = int(daemon.stdout.readline())
            until(lambda: server.paid == 2)
            daemon.kill()
        until(lambda: read_ending(home.run) is not None or gone(pid))
        assert getattr(read_ending(home.run), "calls", 0) == 1, (
            "whoever waits for it can see that it is not over"
        )
        until(lambda: gone(pid))
        assert not list(home.run.glob("*.ending"))
        record = CallReading(home.calls)
        rows = record.calls("run-1")
        assert [(row.state, json.loads(record.body(row.response))["choices"][0]["message"]["content"])
                for row in rows] == [("done", "#1"), ("done", "#2")]  # fmt: skip
        record.close()


def test_on_a_full_disk_nothing_is_given_and_afterwards_all_goes_on(bench: Bench) -> None:
    run = bench.new_run()
    session = bench.open(run)
    session.complete(asking("before"), within())
    pid = bench.models.pid
    assert pid is not None
    paid = bench.server.paid
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    try:
        with raises(ModelFailed, "unreachable", names=["recorded"]) as caught:
            session.complete(asking("no room " * 5000), within())
        assert caught.value.kind == "unreachable"
        assert bench.server.paid == paid  # no intent on record, so nothing was sent
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert said(session.complete(asking("no room " * 5000), within())).startswith("no room")
    assert bench.models.pid == pid
    assert [row.state for row in bench.calls(run)] == ["done", "done"]


def test_an_answer_that_cannot_be_recorded_is_not_given_and_not_paid_twice(bench: Bench) -> None:
    run = bench.new_run()
    session = bench.open(run)
    session.complete(asking("before"), within())
    pid = bench.models.pid
    assert pid is not None
    paid, repeated = bench.server.paid, bench.server.repeated
    bench.server.fault_next("slow", seconds=0.5)
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(session.complete, asking("sent, then full"), within())
        until(lambda: bench.server.paid > paid)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        try:
            with raises(ModelFailed, "unreachable", names=["recorded"]):
                job.result(20)
        finally:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert said(session.complete(asking("sent, then full"), within())).startswith("sent, then full")
    assert bench.server.paid - paid == 1
    assert bench.server.repeated - repeated == 1


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_call_that_kills_each_gateway_is_not_paid_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_TEST_API_KEY", KEY)

    def kill_each() -> None:
        for number in range(1, 6):
            until(lambda number=number: len(server.requests) == number)  # type: ignore[misc]
            assert bench.models.pid is not None  # 0 would be the suite's own group
            os.kill(bench.models.pid, signal.SIGKILL)

    with ModelServer() as server, own_gateway(tmp_path, server) as bench, ThreadPoolExecutor(1) as pool:
        server.fault_next("hang", times=6)
        killing = pool.submit(kill_each)
        with raises(ModelFailed, "unreachable") as caught:
            bench.open().complete(asking("poison"), within())
        killing.result()
        assert caught.value.kind == "unreachable"
        assert len(server.requests) == 5


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_call_that_meets_a_gateway_on_its_way_out_is_the_next_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_TEST_API_KEY", KEY)
    # As where settings changed in the moment between the grant and the call: it was told as a model that is away.

    def answer(request: Json, number: int) -> ServerReply:
        return say(f"#{number}", delay_s=1.0 if number == 1 else 0.0)

    with (
        ModelServer(answer) as server,
        own_gateway(tmp_path, server) as bench,
        ThreadPoolExecutor(1) as pool,
    ):
        session = bench.open()
        slow = pool.submit(session.complete, asking("slow"), within())
        until(lambda: server.paid == 1)
        process = bench.models.current()
        assert process is not None
        assert process._child.stdin is not None
        process._child.stdin.close()
        until(lambda: read_ending(bench.home.run) is not None)
        assert said(session.complete(asking("another"), within())) == "#2"
        assert said(slow.result()) == "#1"


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_gateway_that_is_being_replaced_keeps_nobody_beyond_his_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_TEST_API_KEY", KEY)

    def answer(request: Json, number: int) -> ServerReply:
        return say(f"#{number}", delay_s=8.0 if number == 1 else 0.0)

    with ModelServer(answer) as server, ThreadPoolExecutor(2) as pool:
        first, second = (Setup.of(settings_for(server)) for _ in range(2))
        now = [first]
        models = GatewayModels(make_home(tmp_path / "home"), lambda: now[0])
        bench = Bench(Home(tmp_path / "home"), server, models)
        slow = pool.submit(bench.open().complete, asking("slow"), within())
        until(lambda: server.paid == 1)
        now[0] = second
        patient = pool.submit(bench.open().complete, asking("patient"), within())
        until(lambda: read_ending(bench.home.run) is not None)
        hasty = bench.open()
        with pytest.raises(ModelFailed) as caught:
            hasty.complete(asking("hasty"), within(0.5))
        hasty.close()
        assert not slow.done(), "whom the others wait for"
        assert caught.value.kind == "timeout"
        assert {said(slow.result()), said(patient.result())} == {"#1", "#2"}
        models.close()


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_who_ends_a_run_or_the_daemon_does_not_wait_for_a_gateway_that_is_being_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_TEST_API_KEY", KEY)
    answers = threading.Event()

    def answer(request: Json, number: int) -> ServerReply:
        return say(f"#{number}", delay_s=0.0 if answers.is_set() else 600.0)

    with ModelServer(answer) as server, ThreadPoolExecutor(3) as pool:
        first, second = (Setup.of(settings_for(server)) for _ in range(2))
        now = [first]
        models = GatewayModels(make_home(tmp_path / "home"), lambda: now[0])
        bench = Bench(Home(tmp_path / "home"), server, models)
        slow_session = bench.open()
        slow = pool.submit(slow_session.complete, asking("slow"), within())
        until(lambda: server.paid == 1)
        now[0] = second
        holder, queued = bench.open(), bench.open()
        calls = [pool.submit(one.complete, asking("waits"), within()) for one in (holder, queued)]
        until(lambda: read_ending(bench.home.run) is not None)
        for session, call in zip((holder, queued), calls, strict=True):
            session.close()
            assert isinstance(call.exception(60.0), ModelFailed)
        assert not slow.done(), "whom they waited for"
        os.kill(models.pid or 0, signal.SIGKILL)  # the test need not wait for its end
        slow_session.close()
        assert isinstance(slow.exception(60.0), ModelFailed)
        models.close()


@pytest.mark.slow
def test_a_gateway_starts_in_a_daemon_with_a_thousand_open_files(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4_096), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
    try:
        with ModelServer() as server, own_gateway(tmp_path, server) as bench:
            assert bench.models.process(within()).alive()
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
def test_a_gateway_that_cannot_start_says_why(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    home.keys.write_text('SOME_API_KEY = "x"\n')
    home.keys.chmod(0o644)
    with ModelServer() as server:
        models = GatewayModels(home, settings_for(server))
        with raises(ModelFailed, "unreachable", type_next="chmod 600") as caught:
            Bench(home, server, models).open().complete(asking("x"), within())
        assert caught.value.kind == "unreachable"
        models.close()


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_gateway_that_starts_too_slowly_for_one_caller_is_the_next_ones(tmp_path: Path) -> None:
    with ModelServer() as server:
        models = GatewayModels(make_home(tmp_path / "home"), settings_for(server))
        try:
            with pytest.raises(ModelFailed) as caught:
                models.process(time.monotonic() + 0.001)
            begun = models.pid
            assert caught.value.kind == "timeout"
            assert models.process(within())._child.pid == begun
        finally:
            models.close()
