"""The one way out: only for tasks that allow it, only to hosts that a person named, never in a replay."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agentos.daemon.requests.egress import Egress
from agentos.daemon.requests.run_requests import ToolAsks
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.domain import Call, Effect, Limits, Mode, Result, new_id
from agentos.evolver.history.recordings import recording_of, told
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.ports import Attempt, Plan
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from tests.loopback import serving

pytestmark = pytest.mark.sandbox

TOOL = '''"""Asks the outside."""

from pydantic import BaseModel

from agentos.worker.egress import OutsideError, fetch

TOOL = {"name": "ask_outside", "description": "Fetches a URL.", "effects": ["external"]}


class Input(BaseModel):
    url: str
    method: str = "GET"
    headers: dict[str, str] = {}


class Output(BaseModel):
    status: int
    text: str


def run(input: Input) -> Output:
    try:
        found = fetch(input.url, method=input.method, headers=input.headers, body=b"sent")
    except OutsideError as error:
        return Output(status=0, text=str(error))
    return Output(status=found.status, text=found.text)
'''
DOCUMENT = 'description = "Fetches a URL."\n'


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        # what is left unread when the connection closes would reset it, perhaps before the answer is read
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "http://192.0.2.1/")
            self.end_headers()
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"x" * (5 << 20) if self.path == "/large" else f"GET {self.path}".encode())
        self.server.seen.append(self.path)  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def site() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    server.seen = []  # type: ignore[attr-defined]
    with serving(server):
        yield server


class World:
    def __init__(self, home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Any) -> None:
        self.registry = Registry(home.registry)
        self.registry.commit(
            {"tool/ask-outside/tool.py": TOOL.encode(), "tool/ask-outside/resource.toml": DOCUMENT.encode()},
            "A tool with an outside effect",
            "edit",
        )
        self.ledger, self.sandbox = ledger, sandbox
        self.task = replace(make_task("double", n=1), id=new_id("task"), checks=())

    def run(self, url: str, hosts: list[str], plan: Plan | None = None, **more: Any) -> Attempt:
        serving = RunServices(answerers={"fetch": lambda asking: Egress(hosts, asking), "tool": ToolAsks})
        executor = BoxExecutor(self.registry, self.ledger.blobs, self.sandbox, serving=serving)
        effects = more.pop("effects", (Effect.EXTERNAL,))
        limits = more.pop("limits", self.task.limits)
        call = Call("ask_outside", {"url": url, **more})
        task = replace(self.task, call=call, effects=effects, limits=limits)
        return executor.execute(task, self.registry.stable(), "run-e", plan=plan)


@pytest.fixture
def world(home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Any) -> World:
    return World(home, ledger, sandbox, make_task)


def test_a_named_host_is_reached_and_the_request_is_a_step(world: World, site: ThreadingHTTPServer) -> None:
    place = f"127.0.0.1:{site.server_port}"
    done = world.run(f"http://{place}/a?b=1", [place])
    assert done.answer == {"status": 200, "text": "GET /a?b=1"}
    (step,) = [step for step in done.steps if step.node == "fetch"]
    assert {**step.observation, "headers": {}} == {
        "status": 200,
        "bytes": 10,
        "body": "GET /a?b=1",
        "headers": {},
    }
    assert step.action == {"method": "GET", "url": f"http://{place}/a?b=1", "headers": {}, "body": "sent"}


def test_no_other_host_is_reached(world: World, site: ThreadingHTTPServer) -> None:
    done = world.run(f"http://127.0.0.1:{site.server_port}/x", ["allowed.example", "*.allowed.example"])
    assert done.answer["status"] == 0
    (step,) = [step for step in done.steps if step.node == "fetch"]
    assert step.observation["type"] == "effect"
    assert site.seen == []  # type: ignore[attr-defined]


def test_headers_cannot_smuggle_and_redirects_are_not_followed(
    world: World, site: ThreadingHTTPServer
) -> None:
    place = f"127.0.0.1:{site.server_port}"
    smuggled = world.run(f"http://{place}/", [place], headers={"X-A": "b\r\nHost: elsewhere"})
    assert smuggled.answer["status"] == 0
    assert world.run(f"http://{place}/away", [place]).answer["status"] == 302
    assert "larger than" in world.run(f"http://{place}/large", [place]).answer["text"]


def test_an_address_that_takes_no_connection_leaves_time_for_the_next(
    world: World, site: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = site.server_port
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (name, port)) for name in ("127.0.0.2", "127.0.0.1")]
    with contextlib.ExitStack() as held:
        silent = held.enter_context(socket.socket())
        silent.bind(("127.0.0.2", port))
        silent.listen(0)
        for _ in range(4):  # its queue is full: nobody is answered any more
            waiting = held.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.2", port))
        monkeypatch.setattr("agentos.daemon.requests.egress.socket.getaddrinfo", lambda *_, **__: found)
        place = f"allowed.example:{port}"
        done = world.run(f"http://{place}/a", [place, "127.0.0.0/8"], limits=Limits(wall_s=6))
    assert done.answer == {"status": 200, "text": "GET /a"}


def test_without_the_effect_or_in_a_replay_nothing_leaves(world: World, site: ThreadingHTTPServer) -> None:
    place = f"127.0.0.1:{site.server_port}"
    refused = world.run(f"http://{place}/", [place], effects=(Effect.READ,))
    assert refused.outcome.fault is not None
    assert refused.outcome.fault.type == "effect"
    trial = world.run(f"http://{place}/", [place], Plan(mode=Mode.REPLAY, evolution_id="evo-1"))
    assert trial.outcome.result is Result.NOT_REPLAYABLE
    assert site.seen == []  # type: ignore[attr-defined]


EDITED = {
    "the request": ('method=input.method', 'method="PUT"', Result.NOT_REPLAYABLE),
    "what is sent": ('b"sent"', 'b"more"', Result.NOT_REPLAYABLE),
    "a second request": ("    return Output(status=found", "    fetch(input.url, body=b\"sent\")\n    return Output(status=found", Result.NOT_REPLAYABLE),
    "what is made of the answer": ("text=found.text)", "text=found.text.upper())", Result.PASSED),
    "nothing": ("", "", Result.PASSED),
}  # fmt: skip


@pytest.mark.parametrize("what", EDITED)
def test_in_a_trial_the_code_runs_and_only_the_answer_is_served(
    world: World, site: ThreadingHTTPServer, what: str
) -> None:
    place = f"127.0.0.1:{site.server_port}"
    live = world.run(f"http://{place}/a", [place])
    recording = recording_of(world.registry.stable(), [("run-1", live.steps)])
    old, new, result = EDITED[what]
    world.registry.commit({"tool/ask-outside/tool.py": TOOL.replace(old, new).encode()}, "Edited", "edit")
    trial = world.run(f"http://{place}/a", [], Plan(mode=Mode.REPLAY, recording=recording, evolution_id="e"))
    assert site.seen == ["/a"]  # type: ignore[attr-defined]
    assert trial.outcome.result is result
    if result is Result.PASSED:
        assert trial.answer["text"] == ("GET /A" if new else "GET /a")
        assert "tool/ask-outside/tool.py:21:run" in trial.reached
        again = recording_of(world.registry.stable(), [("trial-1", trial.steps)])
        third = world.run(f"http://{place}/a", [], Plan(Mode.REPLAY, again, evolution_id="e"))
        assert told(third.steps) == told(trial.steps)  # a trial is as good a record as the run was


def test_a_request_that_nobody_answered_fails_again(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
    live = world.run(f"http://{place}/", [place])
    assert "does not answer" in live.answer["text"]
    recording = recording_of(world.registry.stable(), [("run-1", live.steps)])
    trial = world.run(f"http://{place}/", [], Plan(mode=Mode.REPLAY, recording=recording, evolution_id="e"))
    assert trial.answer == live.answer


def test_what_lets_somebody_in_is_not_recorded_and_tells_requests_apart(
    world: World, site: ThreadingHTTPServer
) -> None:
    place = f"127.0.0.1:{site.server_port}"
    live = world.run(f"http://{place}/", [place], headers={"Authorization": "Bearer 12345"})
    (step,) = [step for step in live.steps if step.node == "fetch"]
    assert "12345" not in str(step.action)
    plan = Plan(Mode.REPLAY, recording_of(world.registry.stable(), [("run-1", live.steps)]), evolution_id="e")
    same = world.run(f"http://{place}/", [], plan, headers={"Authorization": "Bearer 12345"})
    assert same.answer == live.answer
    other = world.run(f"http://{place}/", [], plan, headers={"Authorization": "Bearer 54321"})
    assert other.outcome.result is Result.NOT_REPLAYABLE


def test_who_answers_by_drops_holds_nobody_beyond_the_time_of_the_run(world: World) -> None:
    """Each byte in time, and the answer never: the run's slot would be held until the last one."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            with listening.accept()[0] as sock:
                sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                with contextlib.suppress(OSError):
                    while not over.wait(0.1):
                        sock.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        place = f"127.0.0.1:{listening.getsockname()[1]}"
        began = time.monotonic()
        done = world.run(f"http://{place}/", [place], limits=Limits(wall_s=2))
        took = time.monotonic() - began
        over.set()
        thread.join()
    assert done.outcome.result is not Result.PASSED
    assert took < 8


def test_an_answer_that_is_cut_off_is_no_answer(world: World) -> None:
    """Half of a file would pass for the whole of it, now and in every replay."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def cut() -> None:
            with listening.accept()[0] as sock:
                sock.recv(1 << 16)
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it")

        thread = threading.Thread(target=cut)
        thread.start()
        place = f"127.0.0.1:{listening.getsockname()[1]}"
        done = world.run(f"http://{place}/", [place])
        thread.join()
    (step,) = [step for step in done.steps if step.node == "fetch"]
    assert step.observation["type"] == "unreachable"
    assert done.answer["status"] == 0
