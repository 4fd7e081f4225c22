"""What the durable engine keeps: of workflows that have ended nothing for ever, of others their steps."""

from __future__ import annotations

import inspect
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentos.daemon import service
from agentos.daemon.engine import VERSION, Engine, Steps, _database
from agentos.evolver import cycle
from tests.daemon.conftest import until

# The steps of every workflow, in the order in which their text has them. A workflow that was begun with other
# steps cannot go on with these: who changes them raises VERSION, and this.
STEPS = (
    "abi-4",
    {
        cycle: [
            "reproduce", "diagnose", "propose", "race …", "try …", "conclude", "consent", "probe", "promote",
            "probe", "promote",
        ],
        service: ["try fresh", "settle overtaken", "watch"],
    },
)  # fmt: skip


def test_who_changes_the_steps_of_a_workflow_raises_the_version() -> None:
    found = {}
    for module in STEPS[1]:
        named = re.findall(r"[.]step[(]f?\"([^\"]+)\"", inspect.getsource(module))
        found[module] = [re.sub(r"{.*}", "…", name) for name in named]
    assert (VERSION, found) == STEPS


def test_tables_made_under_a_newer_python_know_the_time_in_any_sqlite(tmp_path: Path) -> None:
    database = _database(tmp_path / "engine.db")
    with database.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE at (no INTEGER, ms INTEGER NOT NULL DEFAULT (unixepoch('subsec') * 1000))"
        )
        connection.exec_driver_sql("INSERT INTO at (no) VALUES (1)")
        (stored,) = connection.exec_driver_sql("SELECT ms FROM at").one()
    database.dispose()
    assert abs(stored / 1000 - time.time()) < 3600


# An older version with a step less, killed in its second one.
OLDER = """
import os, sys
from pathlib import Path
from agentos.daemon import engine

engine.VERSION = sys.argv[2]

def body(steps, subject):
    steps.step("first", lambda: None)
    steps.step("last", lambda: subject == "killed" and os._exit(9))

engine = engine.Engine(Path(sys.argv[1]), {"work": body}, lambda kind, subject: None)
engine.launch()
engine.start("work", "done")
while engine.start("work", "done"):  # its end is written a moment after its body's
    pass
engine.start("work", "killed")
while True:
    pass
"""


@pytest.mark.parametrize("version", ["abi-1", VERSION])
@pytest.mark.slow
def test_what_another_version_began_with_other_steps_begins_anew(tmp_path: Path, version: str) -> None:
    path, ended, did = tmp_path / "engine.db", [], []
    killed = subprocess.run([sys.executable, "-P", "-c", OLDER, str(path), version], timeout=60)
    assert killed.returncode == 9

    def body(steps: Steps, subject: str) -> None:
        for name in ("first", "last") if version == VERSION else ("first", "new", "last"):
            steps.step(name, lambda name=name: did.append(name))  # type: ignore[misc]

    engine = Engine(path, {"work": body}, lambda kind, subject: ended.append(subject))
    try:
        engine.launch()
        assert engine.start("work", "killed"), "as the daemon does for what the ledger says is under way"
        assert not engine.start("work", "done"), "what has ended is not done again"
        until(lambda: ended == ["killed"], "it has come to its end", 30)
    finally:
        engine.close()
    assert did == (["last"] if version == VERSION else ["first", "new", "last"])


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
        until(
            lambda: not engine.start("work", "quick-1"),
            "once: its end is written a moment after its body's",
            30,
        )
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


def test_work_with_a_record_of_its_own_is_done_once_at_a_time_and_leaves_no_row(
    tmp_path: Path, released: threading.Event
) -> None:
    path, ended, did = tmp_path / "engine.db", [], []

    def work() -> None:
        did.append("task")
        released.wait(60)
        if len(did) == 1:
            raise OSError("the first one fails")

    engine = Engine(path, {}, lambda kind, subject: ended.append((kind, subject)))
    try:
        engine.launch()
        for _ in range(3):
            engine.begin("run", "task", work)
        assert engine.active("run") == ["task"]
        released.set()
        until(lambda: ended == [("run", "task")], "it has ended", 30)
        assert isinstance(engine.failures.pop("task"), OSError)
        engine.begin("run", "task", work)
        until(lambda: len(ended) == 2, "it was begun again under the same name", 30)
        assert (did, engine.failures, engine.active("run")) == (["task", "task"], {}, [])
        assert set(rows(path).values()) == {0}
    finally:
        released.set()
        engine.close()


def test_what_of_dbos_is_slowed_down_is_there(tmp_path: Path) -> None:
    """Private names: who takes another release of DBOS learns here that they went."""
    from dbos import _workflow_commands

    engine = Engine(tmp_path / "engine.db", {"work": lambda steps, subject: None}, lambda kind, subject: None)
    try:
        assert "_BACKGROUND_JOBS_INTERVAL_SEC" in inspect.getsource(_workflow_commands.background_jobs_thread)
        queue = engine._dbos._registry.get_internal_queue()
        assert queue._polling_interval_sec <= 1.0
        engine.launch()
        assert queue._polling_interval_sec == 60.0
        assert queue is engine._dbos._registry.get_internal_queue()
    finally:
        engine.close()


@pytest.mark.parametrize("name", ["50%41", "a?b", "a#b"])
@pytest.mark.slow
def test_its_file_may_lie_in_a_folder_of_any_name(tmp_path: Path, name: str) -> None:
    home = tmp_path / name
    home.mkdir()
    engine = Engine(home / "engine.db", {}, lambda kind, subject: None)
    try:
        engine.launch()
        assert (home / "engine.db").stat().st_size
        assert list(tmp_path.iterdir()) == [home]
    finally:
        engine.close()


def test_an_engine_that_is_not_launched_leaves_no_file(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "engine.db", {}, lambda kind, subject: None)
    engine.close()
    assert list(tmp_path.iterdir()) == []
