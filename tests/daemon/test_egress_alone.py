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
from agentos.home import Home
from agentos.models.secrets import Secret, keep
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


def asked(
    url: str,
    hosts: list[str],
    home: Home | None = None,
    seconds: float = 10.0,
    headers: Mapping[str, str] | None = None,
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
    headers = headers or ({"X-Key": "{{secret:KEY}}"} if home else {})
    return Egress(hosts, asking, home).answer({"url": url, "headers": headers})


def test_a_header_that_comes_several_times_is_a_list(server: _Server) -> None:
    place = f"[::1]:{server.server_port}"
    headers = asked(f"http://{place}/", [place])["headers"]
    assert (headers["link"], headers["x-one"]) == ("<a>, <b>", "1")


def test_a_secret_goes_to_an_address_as_it_was_bound(server: _Server, home: Home) -> None:
    place = f"[::1]:{server.server_port}"
    keep(
        home,
        Secret("KEY", (f"http://{place}",), any_task=True, set_at="", kept_in="file"),
        VALUE,
        in_file=True,
    )
    asked(f"http://{place}/", [place, "::1"], home)
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


class _Heard(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.seen.append(self.path)  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def site() -> Iterator[HTTPServer]:
    """A server of this machine by IPv4, with the paths that it was asked for."""
    made = HTTPServer(("127.0.0.1", 0), _Heard)
    made.seen = []  # type: ignore[attr-defined]
    with serving(made):
        yield made


def refused(site: HTTPServer, url: str, hosts: list[str], **more: Any) -> str:
    """The kind of refusal; "effect" is what a person could allow."""
    with pytest.raises(Denied) as denied:
        asked(url.replace("{port}", str(site.server_port)), hosts, **more)
    assert site.seen == []  # type: ignore[attr-defined]
    return denied.value.fault.type


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/x",
        "http://allowed.example.evil.test/",
        "http://allowed.example:1/",
        "http://2130706433:{port}/",
    ],
)
def test_what_nobody_named_is_not_reached(site: HTTPServer, url: str) -> None:
    assert refused(site, url, ["allowed.example", "*.allowed.example"]) == "effect"


@pytest.mark.parametrize(
    "url",
    [
        "http://allowed.example@127.0.0.1:{port}/",
        "file:///etc/passwd",
        "ftp://allowed.example/",
        "http://[::1",
        "http://[::1%25.allowed.example]:{port}/",
        "http://allowed.example/a b",
        "http://allowed.example/\r\nHost: x",
        f"http://{'a' * 64}.allowed.example/",
        "http://a..allowed.example/",
        "http://.allowed.example/",
        f"http://{'a.' * 130}allowed.example/",
        "http://allowed.example../",
    ],
)
def test_what_is_no_url_of_a_host_is_no_request(site: HTTPServer, url: str) -> None:
    assert refused(site, url, ["allowed.example", "*.allowed.example"]) == "request"


@pytest.mark.parametrize(
    "headers",
    [{"X-A": "b\r\n folded: c"}, {"X-A": "b\n\tfolded"}, {"X-A": "\x00"}, {"X-A": "\x7f"}, {"X A": "b"}, {"": "b"}, {"X-A\r\nX-B": "c"}],
)  # fmt: skip
def test_headers_are_names_and_one_line(site: HTTPServer, headers: dict[str, str]) -> None:
    place = f"127.0.0.1:{site.server_port}"
    assert refused(site, f"http://{place}/", [place], headers=headers) == "request"


class Names:
    """What names resolve to, one answer after the other; the last one stays."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked = 0

    def __call__(self, host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        family = socket.AF_INET6 if ":" in answer else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (answer, port))]


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1",
     "224.0.0.1", "239.255.255.250", "255.255.255.255", "::", "::1", "fe80::1", "fc00::1", "ff02::1",
     "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::", "fec0::1"],
)  # fmt: skip
def test_a_name_that_leads_into_the_machine_or_its_networks_is_refused(
    site: HTTPServer, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr("agentos.daemon.requests.egress.socket.getaddrinfo", Names(address))
    hosts = [f"*.allowed.example:{site.server_port}"]
    assert refused(site, "http://a.allowed.example:{port}/", hosts) == "effect"


@pytest.mark.parametrize("named", ["127.0.0.1", "127.0.0.1:{port}", "127.0.0.0/8"])
def test_a_name_is_resolved_once_and_may_lead_to_an_address_that_is_named(
    site: HTTPServer, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """Whoever looks, and then connects by name, may be led elsewhere the second time."""
    names = Names("127.0.0.1", "192.0.2.1")
    monkeypatch.setattr("agentos.daemon.requests.egress.socket.getaddrinfo", names)
    place = f"allowed.example:{site.server_port}"
    found = asked(f"http://{place}/a", [place, named.replace("{port}", str(site.server_port))])
    assert (found["status"], site.seen, names.asked) == (200, ["/a"], 1)  # type: ignore[attr-defined]
