"""Sending to a real HTTP server that stands in for a collector, well and unwell."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agentos.domain import Json
from agentos.errors import ErrorKind, UserError
from agentos.trajectories.chat import FinishedRun
from agentos.trajectories.sending import WAITING_MAX, Sender
from tests.loopback import serving
from tests.refusals import raises

Make = Callable[..., FinishedRun]
STEP = ("act", {"tool": "add", "args": {}}, {"ok": True})


class Collector(ThreadingHTTPServer):
    """Answers with ``statuses`` in turn, then with 200; keeps what it took."""

    daemon_threads = True

    def __init__(self, *statuses: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses = list(statuses)
        self.taken: list[tuple[str, str, Json]] = []
        self.hold = threading.Event()
        self.hold.set()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def runs(self) -> set[str]:
        """Ids of the runs whose spans arrived."""
        return {
            attribute["value"]["stringValue"]
            for _, _, body in self.taken
            for span in body["resourceSpans"][0]["scopeSpans"][0]["spans"]
            for attribute in span["attributes"]
            if attribute["key"] == "agentos.run.id"
        }


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.hold.wait(20)
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if status == 200:
            self.server.taken.append((self.path, self.headers["Content-Type"], body))
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def running(*statuses: int) -> Iterator[Collector]:
    with serving(Collector(*statuses)) as collector:
        try:
            yield collector
        finally:
            collector.hold.set()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_runs_arrive_as_otlp_and_closing_sends_what_waits(happened: Make) -> None:
    told: list[str] = []
    with running() as collector:
        sender = Sender(collector.address, told.append)
        for number in range(200):
            sender.send(happened(STEP, id=f"run-{number}"))
        sender.close()
        assert collector.runs() == {f"run-{number}" for number in range(200)}
        assert {(path, kind) for path, kind, _ in collector.taken} == {("/v1/traces", "application/json")}
        assert len(collector.taken) < 200  # in batches
    assert told == []


def test_a_whole_address_is_taken_as_it_is(happened: Make) -> None:
    with running() as collector:
        sender = Sender(f"{collector.address}/team/v1/traces", lambda _: None)
        sender.send(happened(STEP))
        sender.close()
        assert [path for path, _, _ in collector.taken] == ["/team/v1/traces"]


def test_what_is_sent_is_redacted(happened: Make) -> None:
    with running() as collector:

        def redact(value: Json) -> Json:
            return json.loads(json.dumps(value).replace("add", "[redacted]"))

        sender = Sender(collector.address, lambda _: None, redact)
        sender.send(happened(STEP))
        sender.close()
        assert "execute_tool [redacted]" in json.dumps(collector.taken)


def test_an_overloaded_collector_is_asked_again(happened: Make) -> None:
    told: list[str] = []
    with running(503) as collector:
        sender = Sender(collector.address, told.append)
        sender.send(happened(STEP))
        wait_for(lambda: collector.runs() == {"run-1"})
        sender.close()
    assert told == []


def test_a_refusal_is_told_once_and_the_recovery_too(happened: Make) -> None:
    told: list[str] = []
    with running(400, 400) as collector:
        sender = Sender(collector.address, told.append)
        for number in range(3):
            sender.send(happened(STEP, id=f"run-{number}"))
            wait_for(lambda number=number: len(collector.statuses) <= max(1 - number, 0))
        wait_for(lambda: collector.runs() == {"run-2"})
        sender.close()
    assert [sentence.split(" ", 2)[1] for sentence in told] == ["cannot", "reach"]
    assert "it answered 400" in told[0]


def test_nobody_waits_for_a_collector_that_hangs(happened: Make) -> None:
    told: list[str] = []
    with running() as collector:
        collector.hold.clear()
        sender = Sender(collector.address, told.append)
        began = time.monotonic()
        for number in range(WAITING_MAX + 200):
            sender.send(happened(STEP, id=f"run-{number}"))
        sender.close(wait_s=0.2)
        sender.send(happened(STEP))  # after the end: nothing happens
        assert sender._thread.is_alive(), "nobody waited until the collector was given up"
        assert time.monotonic() - began < 8  # of the ten seconds after which it is given up
        assert len(told) == 1
    assert "wait to be sent" in told[0]


def test_a_collector_that_is_away_or_speaks_no_http(happened: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]

        def hang_up() -> None:
            while True:
                try:
                    peer, _ = deaf.accept()
                except OSError:
                    return
                peer.sendall(b"SSH-2.0\r\n")
                peer.close()

        threading.Thread(target=hang_up, daemon=True).start()
        told: list[str] = []
        sender = Sender(f"http://127.0.0.1:{port}", told.append)
        sender.send(happened(STEP))
        sender.close(wait_s=10)
        assert len(told) == 1
        deaf.shutdown(socket.SHUT_RDWR)
    told.clear()
    sender = Sender(f"http://127.0.0.1:{port}", told.append)
    sender.send(happened(STEP))
    sender.close(wait_s=10)
    assert len(told) == 1
    assert "Refused" in told[0]


@pytest.mark.parametrize(
    "address", ["localhost:4318", "ftp://x", "http://", "file:///etc/passwd", "http://x:y"]
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with raises(UserError, ErrorKind.USAGE, names=["otlp"]):
        Sender(address, lambda _: None)


def test_an_ipv6_address_without_a_port_is_whole(happened: Make) -> None:
    told: list[str] = []
    sender = Sender("http://[::1]", told.append)
    sender.send(happened(STEP))
    sender.close(wait_s=10)
    assert "gaierror" not in told[0]  # nobody listens, or there is no IPv6 here


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/spans/für", f"http://{'a' * 64}.example"])
def test_an_address_that_cannot_be_asked_is_told(happened: Make, address: str) -> None:
    told: list[str] = []
    sender = Sender(address, told.append)
    sender.send(happened(STEP))
    sender.close(wait_s=10)
    assert len(told) == 1
