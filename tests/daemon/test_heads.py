"""Heads of the audit log on their way out: a file on another disk, a collector that listens."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.upkeep.auditing import noted_heads, verify_home
from agentos.daemon.upkeep.heads import Heads
from agentos.errors import ErrorKind, UserError
from agentos.home import Home
from agentos.ledger.audit import AuditHead
from agentos.ledger.store import Ledger
from tests.loopback import serving
from tests.refusals import raises
from tests.test_durable import no_file_beyond

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO = AuditHead(1, "a" * 64), AuditHead(2, "b" * 64)


def test_each_head_is_one_line_and_is_told_once(tmp_path: Path) -> None:
    path, told = tmp_path / "heads", list[str]()
    heads = Heads([str(path)], told.append)
    for head in (ONE, ONE, TWO):
        heads.send(head, NOW)
    assert path.read_text() == f"2026-01-01T00:00:00+00:00 {ONE}\n2026-01-01T00:00:00+00:00 {TWO}\n"
    assert [head for head, _ in noted_heads(path)] == [ONE, TWO]
    assert path.stat().st_mode & 0o777 == 0o600
    assert told == []


def test_a_disk_that_is_away_is_told_once_and_its_folder_is_not_made(tmp_path: Path) -> None:
    path, told = tmp_path / "disk" / "heads", list[str]()
    heads = Heads([str(path)], told.append)
    heads.send(ONE, NOW)
    heads.send(ONE, NOW)
    assert told == [f"heads of the audit log cannot be sent to {path}: No such file or directory"]
    assert not path.parent.exists()
    path.parent.mkdir()
    heads.send(TWO, NOW)
    assert [head for head, _ in noted_heads(path)] == [TWO]
    assert told[1:] == [f"heads of the audit log reach {path} again"]


def test_a_pipe_that_nobody_reads_is_told_and_not_waited_for(tmp_path: Path) -> None:
    path, told = tmp_path / "heads", list[str]()
    os.mkfifo(path)
    Heads([str(path)], told.append).send(ONE, NOW)
    assert len(told) == 1


def test_half_a_line_is_taken_back(tmp_path: Path) -> None:
    path, told = tmp_path / "heads", list[str]()
    heads = Heads([str(path)], told.append)
    heads.send(ONE, NOW)
    with no_file_beyond(path.stat().st_size + 50):
        heads.send(TWO, NOW)
    assert len(told) == 1
    assert [head for head, _ in noted_heads(path)] == [ONE]
    heads.send(TWO, NOW)
    assert [head for head, _ in noted_heads(path)] == [ONE, TWO]


@pytest.mark.parametrize(
    "cut", ["2026-01", "2026-01-01T00:00:00+00:00", f"2026-01-01T00:00:00+00:00 {TWO}"[:30], "\0\0\0"]
)
def test_a_line_that_a_power_cut_left_half_written_spoils_no_other(tmp_path: Path, cut: str) -> None:
    path = tmp_path / "heads"
    Heads([str(path)], print).send(ONE, NOW)
    with path.open("a") as file:
        file.write(cut)
    assert [head for head, _ in noted_heads(path)] == [ONE]
    Heads([str(path)], print).send(TWO, NOW)
    assert [head for head, _ in noted_heads(path)] == [ONE, TWO]


def test_a_line_that_is_no_head_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "heads"
    path.write_text("the head is 12\n")
    with pytest.raises(UserError):
        noted_heads(path)


@pytest.mark.parametrize("target", ["heads", "~/heads", "http://", "http://[::1"])
def test_what_is_neither_a_file_nor_a_collector_is_refused(target: str) -> None:
    with raises(UserError, ErrorKind.USAGE, names=["audit_heads"]):
        Heads([target], print)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.heard.append((self.path, json.loads(body)))  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.heard = []
    with serving(server):
        yield server


def test_a_collector_gets_a_log_record(collector: Any) -> None:
    heads = Heads([f"http://127.0.0.1:{collector.server_port}"], print)
    heads.send(TWO, NOW)
    ((path, body),) = collector.heard
    assert path == "/v1/logs"
    (record,) = body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert record["body"]["stringValue"] == f"audit head {TWO}"
    assert record["timeUnixNano"] == "1767225600000000000"


@pytest.mark.sandbox
@pytest.mark.slow
def test_the_daemon_sends_heads_that_its_log_contains(
    daemon: Any, home: Home, ledger: Ledger, tmp_path: Path, until: Callable[..., None]
) -> None:
    path = tmp_path / "heads"
    home.settings.write_text(home.settings.read_text() + f'\naudit_heads = ["{path}"]\n')
    ledger.note("test", "x", {})
    daemon.start()
    until(path.exists, "a head was sent")
    ledger.note("test", "y", {})
    noted = noted_heads(path)
    assert noted
    assert verify_home(home, noted).faults == ()
    false = (AuditHead(noted[0][0].count, "c" * 64), "another")
    assert any("another knows" in fault for fault in verify_home(home, [false]).faults)
