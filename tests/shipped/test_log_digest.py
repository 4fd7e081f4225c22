"""The skill log-digest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]

APP = """started by hand
2026-03-14 09:21:07,123 INFO server: listening on 10.0.0.1:8080
2026-03-14 09:21:09,500 ERROR worker 17: task 4711 failed
Traceback (most recent call last):
  ValueError: 2026 is no level
2026-03-14T09:31:09Z [warn] disk 91% full, error likely
[2026-03-14 10:31:09 +0100] ERROR worker 18: task 4712 failed
2026-03-14 09:31:10 FATAL request 6f9619ff-8b86-4d01-b42d-00cf4fc964ff lost at 0xdeadbeef
2026-03-14 09:31:11 no errors were found, an error is unlikely
"""
SYSLOG = """Mar 14 09:21:07 host sshd[812]: error: kex_exchange from 10.0.0.7 port 2222
Mar  4 09:21:07 host cron[1]: (root) CMD (true)
Foo 14 09:21:07 host not: a date
Feb 30 09:21:07 host not: a date either
"""


@pytest.fixture(autouse=True)
def logs(workspace: Path) -> None:
    (workspace / "app.log").write_text(APP)
    (workspace / "syslog").write_text(SYSLOG)
    (workspace / "empty").write_text("nothing\n")


def test_level_counts(call: Call) -> None:
    assert call("level_counts", path="app.log") == {
        "entries": 6, "debug": 0, "info": 1, "warning": 1, "error": 2, "critical": 1, "none": 1, "continued": 2,
    }  # fmt: skip
    found = call("level_counts", path="syslog", year=2026)
    assert (found["entries"], found["error"], found["none"], found["continued"]) == (2, 1, 1, 2)
    assert call("level_counts", path="empty")["entries"] == 0


def test_top_messages(call: Call) -> None:
    found = call("top_messages", path="app.log", level="error")
    assert found == {"entries": 2, "distinct": 1, "top": [{"message": "worker #: task # failed", "count": 2}]}
    found = call("top_messages", path="app.log", level="critical")
    assert found["top"][0]["message"] == "request # lost at #"
    found = call("top_messages", path="app.log", top=2)
    assert (found["entries"], found["distinct"], len(found["top"])) == (6, 5, 2)
    assert call("top_messages", path="app.log", level="info")["top"][0]["message"] == "server: listening on #"


def test_log_span(call: Call) -> None:
    found = call("log_span", path="app.log")
    assert found == {
        "entries": 6, "first": "2026-03-14T09:21:07.123000Z", "last": "2026-03-14T09:31:11Z",
        "seconds": 603.877, "longest_silence": 599.5,
    }  # fmt: skip
    found = call("log_span", path="syslog", year=2026)
    assert (found["first"], found["seconds"]) == ("2026-03-04T09:21:07Z", 864000.0)
    assert call("log_span", path="empty")["first"] is None


def test_the_first_entry_after_a_byte_order_mark_and_a_time_before_all_times(
    call: Call, workspace: Path
) -> None:
    text = "\ufeff2026-01-01 00:00:00 INFO one\n0001-01-01 00:00:00+05:00 INFO two\n"
    (workspace / "marked.log").write_text(text, encoding="utf-8")
    assert call("level_counts", path="marked.log")["info"] == 1
    assert call("log_span", path="marked.log")["first"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("message", ["Zone missing", "12345 bytes freed", "0500ms late", "5000 left"])
def test_a_message_that_begins_like_an_offset_stays_whole(call: Call, workspace: Path, message: str) -> None:
    sign = "" if message[0] == "Z" else "-"
    (workspace / "one.log").write_text(f"2026-01-01 10:00:00 {sign}{message}\n")
    assert call("log_span", path="one.log")["first"] == "2026-01-01T10:00:00Z"
    from_start = call("top_messages", path="one.log")["top"][0]["message"]
    assert from_start.endswith(message.split(maxsplit=1)[1])
    assert from_start[0] in "Z#"
