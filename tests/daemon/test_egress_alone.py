"""Requests to the outside without a box: what is asked of which server, and what comes back."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.job.bundle import Bundle
from agentos.daemon.mcp.server_box import certificate_for
from agentos.daemon.requests.egress import Egress
from agentos.daemon.requests.run_requests import Denied, RunContext, RunSpending
from agentos.domain import Effect, Json, Limits, Snapshot, Step, Task
from agentos.models.secrets import Secret
from agentos.ports import Plan
from tests.loopback import serving

VALUE = "a-value-of-some-length"


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.keys.append(self.headers.get("X-Key"))  # type: ignore[attr-defined]
        self.send_response(200)
        for name, value in (("Link", "<a>"), ("X-One", "1"), ("link", "<b>")):
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None: ...


class _Server(HTTPServer):
    address_family = socket.AF_INET6
    keys: list[str | None]


@pytest.fixture(scope="module")
def server() -> Iterator[_Server]:
    try:
        made = _Server(("::1", 0), _Answers)
    except OSError:
        pytest.skip("this machine has no IPv6")
    made.keys = []
    with serving(made):
        yield made


class Bound:
    """A vault with one secret for one host."""

    def __init__(self, host: str) -> None:
        self._host = host

    def all(self) -> Mapping[str, Secret]:
        return {"KEY": Secret("KEY", (self._host,), any_task=True, set_at="", kept_in="file")}

    def value(self, name: str) -> str:
        return VALUE


def asked(
    url: str, hosts: list[str], vault: Bound | None = None, seconds: float = 10.0
) -> Mapping[str, Json]:
    now, limits = datetime.now(UTC), Limits()
    tool = b'TOOL = {"name": "t", "secrets": ["KEY"]}'
    asking = RunContext(
        run_id="run-1",
        task=Task("t", "", "", None, (), "default", limits, (*Effect,), (), None, now),
        snapshot=Snapshot("", ""),
        plan=Plan(),
        bundle=Bundle({"tool/t/tool.py": tool}, "", limits),
        deadline=time.monotonic() + seconds,
        step=lambda node, action, seen, ms: Step("run-1", 0, node, action, seen, None, now, ms),
        spent=RunSpending(),
    )
    headers = {"X-Key": "{{secret:KEY}}"} if vault else {}
    return Egress(hosts, asking, vault).answer({"url": url, "headers": headers})


def test_a_header_that_comes_several_times_is_a_list(server: _Server) -> None:
    place = f"[::1]:{server.server_port}"
    headers = asked(f"http://{place}/", [place])["headers"]
    assert (headers["link"], headers["x-one"]) == ("<a>, <b>", "1")


def test_a_secret_goes_to_an_address_as_it_was_bound(server: _Server) -> None:
    place = f"[::1]:{server.server_port}"
    asked(f"http://{place}/", [place, "::1"], Bound(f"http://{place}"))
    assert server.keys[-1] == VALUE


@pytest.mark.parametrize("named", [["[::1]"], ["::1"], ["[::1]:{other}"], ["[::1]:{port}0", "[::2]:{port}"]])
def test_another_port_or_address_is_another_place(server: _Server, named: list[str]) -> None:
    port = server.server_port
    with pytest.raises(Denied):
        asked(f"http://[::1]:{port}/", [one.format(port=port, other=port + 1) for one in named])


def test_a_request_after_the_runs_time_is_no_fault_of_the_machinery(server: _Server) -> None:
    place = f"[::1]:{server.server_port}"
    with pytest.raises(Denied) as denied:
        asked(f"http://{place}/", [place], seconds=-1.0)
    assert denied.value.fault.type == "timeout"


def test_a_certificate_that_nobody_trusts_is_told_with_what_mends_it(tmp_path: Path) -> None:
    """It is an error of a value too, and was told as a request with a header that cannot be."""
    pem = tmp_path / "site.pem"
    pem.write_text(certificate_for(["127.0.0.1"]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with HTTPServer(("127.0.0.1", 0), _Answers) as made:
        made.socket = context.wrap_socket(made.socket, server_side=True)
        thread = threading.Thread(target=made.handle_request, daemon=True)
        thread.start()
        place = f"127.0.0.1:{made.server_port}"
        with pytest.raises(Denied, match="SSL_CERT_FILE") as denied:
            asked(f"https://{place}/", [place, "127.0.0.1"])
        thread.join(10)
    assert denied.value.fault.type == "unreachable"
