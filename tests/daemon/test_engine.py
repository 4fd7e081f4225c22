"""What the durable engine keeps of workflows that have ended: nothing for ever."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentos.daemon.engine import Engine, Steps
from tests.daemon.conftest import until


@pytest.fixture
def released() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def rows(path: Path) -> dict[str, int]:
    with closing(sqlite3.connect(path)) as connection:
        tables = ("workflow_status", "workflow_input", "workflow_output", "operation_outputs")
        return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}


def test_workflows_that_ended_long_ago_leave_no_row_and_others_stay(
    tmp_path: Path, released: threading.Event
) -> None:
    path, ended = tmp_path / "engine.db", []

    def body(steps: Steps, subject: str) -> None:
        steps.step("work", lambda: subject)
        if subject == "slow":
            released.wait(60)

    engine = Engine(path, {"work": body}, lambda kind, subject: ended.append(subject))
    try:
        engine.launch()
        for number in range(5):
            assert engine.start("work", f"quick-{number}")
        until(lambda: len(ended) == 5 and not engine.active("work"), "they have ended", 30)
        assert engine.start("work", "slow")
        assert not engine.start("work", "quick-1"), "once"
        now = datetime.now(UTC)
        assert engine.forget(now - timedelta(days=7)) == 0
        far = now + timedelta(minutes=1)
        until(lambda: engine.forget(far) == 0 and rows(path)["workflow_status"] == 1, "they are gone", 30)
        assert set(rows(path).values()) <= {0, 1}
        assert engine.active("work") == ["slow"]
        released.set()
        until(lambda: "slow" in ended, "it went on", 30)
    finally:
        released.set()
        engine.close()
