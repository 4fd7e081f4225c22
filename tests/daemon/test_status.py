"""Whether a daemon works, as a monitor reads it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.control.daemon_lock import DaemonLock, daemon_info
from agentos.daemon.setup import init_home
from agentos.daemon.upkeep.doctor import examine
from agentos.daemon.upkeep.heartbeat import HeartbeatFile, read_heartbeat
from agentos.daemon.upkeep.status import ABSENT, DEGRADED, WORKS, daemon_status
from agentos.domain import Outcome, Result, Run, Share, Task
from agentos.home import Home
from agentos.ledger.connect import damage_of
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from tests.daemon.conftest import Daemon
from tests.daemon.test_tasks import SNAPSHOT


@pytest.fixture
def beats(home: Home) -> Any:
    lock = DaemonLock(home)
    lock.ready()
    yield HeartbeatFile(home)
    lock.release()


def test_without_a_daemon_it_is_absent(home: Home) -> None:
    status = daemon_status(home)
    assert (status.state, status.code) == ("absent", ABSENT)
    assert "agentos daemon start" in status.why


def test_one_that_turns_works_and_one_that_pauses_does_not(home: Home, beats: HeartbeatFile) -> None:
    assert daemon_status(home).state == "silent"
    beats.turned()
    beats.write("", "", ())
    status = daemon_status(home)
    assert (status.state, status.code) == ("works", WORKS)
    assert status.beat is not None
    assert 0 < status.beat.descriptors < status.beat.descriptors_max
    beats.turned("it went wrong")  # told at once, whatever the second
    beats.write("the disk is full", "2026-01-01", ["task-a"])
    status = daemon_status(home)
    assert (status.state, status.code) == ("paused", DEGRADED)
    assert "the disk is full" in status.why


def test_it_is_told_again_where_the_folder_was_moved_away_and_another_one_put_there(
    home: Home, beats: HeartbeatFile
) -> None:
    beats.turned()
    beats.write("", "", ())
    home.run.rename(home.root / "away")
    shutil.copytree(home.root / "away", home.run, ignore=shutil.ignore_patterns("heartbeat.json"))
    assert daemon_status(home).state == "silent"
    beats._next = 0.0
    beats.write("", "", ())
    assert daemon_status(home).state == "works"


def test_a_task_that_waits_for_its_first_host_says_so(home: Home, beats: HeartbeatFile) -> None:
    beats.turned()
    beats.write("", "", ["task-a"])
    (waiting,) = daemon_status(home).waiting
    assert "agentos cluster status" in waiting.why


def test_one_whose_chores_fail_does_not_work_until_they_do(home: Home, beats: HeartbeatFile) -> None:
    beats.turned()
    assert not beats.chore("skills")
    assert beats.chore("skills", "PermissionError", "no access to /registry/tmp_1")
    beats.write("", "", ())
    assert daemon_status(home).code == WORKS, "once may be by chance"
    beats._next = 0.0
    assert not beats.chore("skills", "PermissionError", "no access to /registry/tmp_2"), "told once"
    beats.write("", "", ())
    status = daemon_status(home)
    assert (status.state, status.code) == ("failing", DEGRADED)
    assert "skills" in status.why
    assert "tmp_2" in status.why
    assert beats.chore("skills", "GitError", "bad object"), "something else"
    assert beats.chore("skills")
    beats._next = 0.0
    beats.write("", "", ())
    assert daemon_status(home).code == WORKS


def test_a_chore_that_comes_no_more_is_no_fault_for_ever(
    home: Home, beats: HeartbeatFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats.turned()
    for _ in range(2):
        beats.chore("schedule task-1", "OSError", "no room")
    monkeypatch.setattr("agentos.daemon.upkeep.heartbeat._LATELY_S", 0.0)
    beats.write("", "", ())
    assert daemon_status(home).code == WORKS


def test_one_that_says_nothing_for_long_hangs(home: Home, beats: HeartbeatFile) -> None:
    beats.turned()
    beats.write("", "", ())
    path = home.run / "heartbeat.json"
    old = (datetime.now(UTC) - timedelta(minutes=5)).isoformat(timespec="seconds")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"at": old}))
    assert daemon_status(home).state == "silent"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_one_whose_home_is_read_only_is_silent_and_says_why_within_seconds(
    home: Home, beats: HeartbeatFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats.turned()
    beats.write("", "", ())
    monkeypatch.setattr("agentos.daemon.upkeep.status._UNUSUAL_S", 0.0)
    assert daemon_status(home).state == "works"
    subprocess.run(["mount", "--bind", "-o", "ro", home.root, home.root], check=True)
    try:
        status = daemon_status(home)
        assert (status.state, status.code) == ("silent", DEGRADED)
        assert "Read-only" in status.why
    finally:
        subprocess.run(["umount", home.root], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_daemon_whose_home_turned_read_only_gives_up_its_lock(home: Home) -> None:
    """It raised at its end, and waited for its threads for ever."""
    lock = DaemonLock(home)
    subprocess.run(["mount", "--bind", "-o", "ro", home.root, home.root], check=True)
    try:
        lock.release()
        assert daemon_info(home) is not None
    finally:
        subprocess.run(["umount", home.root], check=True)
    DaemonLock(home).release()
    assert daemon_info(home) is None


def test_what_waits_is_named_with_its_reason(
    home: Home, ledger: Ledger, beats: HeartbeatFile, make_task: Callable[..., Task], add: Callable[..., Task]
) -> None:
    task = add(make_task("double", n=1))
    run = Run("run-1", task.id, task.key, Share.OPEN, 1, SNAPSHOT, "f", "none", datetime.now(UTC))
    ledger.begin_run(run)
    ledger.finish_run(run.id, Outcome(Result.INFRA, 0.0, "nobody listens there"))
    ledger.note("task.given_up", "task-x", {})
    beats.turned()
    beats.write("", "", [task.id, "evo-1"])
    status = daemon_status(home)
    assert [(item.task, item.why) for item in status.waiting] == [(task.id, "nobody listens there")]
    assert status.given_up == 1


def test_settings_that_are_not_in_force_are_told(home: Home, beats: HeartbeatFile) -> None:
    beats.write("", "", ())
    assert not daemon_status(home).stale_settings
    text = home.settings.read_text()
    home.settings.write_text(
        f'model = "main"\n{text}\n[providers.local]\napi_base = "http://127.0.0.1:1/v1"\n'
    )
    assert not daemon_status(home).stale_settings, "models are read whenever they change"
    (home.root / "policy.toml").write_text("[wait]\nmodels_s = 1.0\n")
    assert daemon_status(home).stale_settings
    assert not daemon_status(home).settings_fault
    for path in (home.settings, home.root / "policy.toml"):
        before = path.read_text()
        path.write_text("x = [[[")
        assert str(path) in daemon_status(home).settings_fault, "who follows the hint has no daemon then"
        path.write_text(before)


def test_one_that_is_cut_off_from_its_database_is_told_after_one_try(
    home: Home, beats: HeartbeatFile
) -> None:
    """Each of three looks waited for ten seconds, and the last word of the daemon was that it works."""
    beats.turned()
    beats.write("", "", ())
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"postgresql://ada@127.0.0.1:{silent.getsockname()[1]}/ledger"
        home.settings.write_text(f'database = "{place}"\n')
        status = daemon_status(home)
        silent.setblocking(False)
        tries = 0
        with suppress(BlockingIOError):
            while True:
                silent.accept()[0].close()
                tries += 1
    assert (status.state, status.code) == ("failing", DEGRADED)
    assert place in status.why
    assert tries == 1


def test_a_heartbeat_that_is_no_heartbeat_is_none(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{")
    assert read_heartbeat(tmp_path / "x") is None


def damage(home: Home) -> None:
    """Overwrite the pages of an index that a start does not read."""
    with closing(sqlite3.connect(home.ledger)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'ix_run_task_key_seq'"
        ).fetchone()
    with home.ledger.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(os.urandom(size))


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_daemon_on_a_damaged_ledger_says_so_and_takes_no_task(
    home: Home, make_task: Callable[..., Task], until: Any
) -> None:
    ledger = Ledger(home.ledger)
    ledger.add_task(make_task("double", n=1), Share.OPEN)
    ledger.close()
    assert damage_of(home.ledger) == ""
    damage(home)
    assert damage_of(home.ledger) != ""
    daemon = Daemon(home)
    try:
        daemon.start()
        until(lambda: daemon_status(home).state == "damaged", "it says so")
        status = daemon_status(home)
        assert status.code == DEGRADED
        assert "restore a backup" in status.why
        assert [view.state.value for view in Reader(home.ledger).tasks()] == ["queued"]
        assert (home.logs / "daemon.log").read_text().count("turn failed") <= 1
    finally:
        daemon.close()


def test_the_doctor_blames_a_home_that_is_read_only_once(made_home: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    place = tmp_path / "still"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=True)
    try:
        subprocess.run(["cp", "-r", made_home, place / "home"], check=True)
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        found = examine(Home(place / "home"), fix=False)
        assert [item.what for item in found if "ead-only" in item.what] == [found[0].what], found
        assert not [item.what for item in found if "ledger.db" in item.what], "its blame is the same"
        report = Registry(place / "home" / "registry.git").check()
        assert [str(place) in fault and "Read-only" in fault for fault in report.faults] == [True], (
            report.faults
        )
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.parametrize("name", ["ledger.db", "blobs"])
def test_the_doctor_names_a_part_of_the_home_that_is_read_only(
    made_home: Path, tmp_path: Path, name: str
) -> None:
    """Mounted so for root, whom no mode keeps from writing."""
    home = Home(tmp_path / "home")
    shutil.copytree(made_home, home.root)
    part = home.root / name
    if os.geteuid() != 0:
        part.chmod(0o500)
        assert str(part) in " ".join(item.what for item in examine(home, fix=False))
        return
    subprocess.run(["mount", "--bind", part, part], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", part], check=True)
        assert str(part) in " ".join(item.what for item in examine(home, fix=False))
    finally:
        subprocess.run(["umount", "-l", part], check=True)


@pytest.mark.slow
def test_settings_that_the_doctor_found_good_are_read_again_once_anything_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("without bubblewrap the settings are read for the sandbox")
    init_home(home := Home(tmp_path / "home"))
    home.run.mkdir(exist_ok=True)

    def told() -> list[str]:
        return [item.what for item in examine(home, fix=False) if "agentos.toml" in item.what]

    assert told() == []
    with monkeypatch.context() as patch:
        patch.setattr("agentos.settings.load_settings", None)
        assert told() == [], "not read again"
    monkeypatch.setenv("AGENTOS_PARALLEL", "many")
    assert told() != []
    monkeypatch.delenv("AGENTOS_PARALLEL")
    good = home.settings.read_text()
    home.settings.write_text(good + "\nparalel = 3\n")
    assert told() != []
    assert told() != [], "what is wrong is told each time"
    home.settings.write_text(good)
    assert told() == []


def test_the_doctor_says_that_nothing_reaches_the_blobs(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTOS_RUN_UID", "61321")
    home.settings.write_text('blobs = "s3://bucket/agentos"\n')
    monkeypatch.setitem(sys.modules, "fsspec.core", None)  # as if it were not installed
    assert any("agentos-daemon[blobs]" in finding.what for finding in examine(home, fix=False))


def test_the_doctor_says_that_there_is_no_sandbox(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(str(shutil.which("git")))
    (home.root / "agentos.toml").write_text('sandbox = "bubblewrap"\nrun_uid = 61321\n')
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert any("no sandbox" in item.what for item in examine(home, fix=False))


def test_a_reason_in_any_letters_leaves_a_heartbeat_that_can_be_read(
    home: Home, beats: HeartbeatFile
) -> None:
    beats.turned("\N{GRINNING FACE}" * 600)
    beats.write("ü" * 600, "2026-01-01", ["task-ü" * 20] * 20)
    found = read_heartbeat(home.run / "heartbeat.json")
    assert found is not None
    assert found.paused.startswith("üü")


def test_an_error_of_a_clock_that_was_ahead_is_over_with_the_next_good_turn(
    home: Home, beats: HeartbeatFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as ahead:
        ahead.setattr("time.time", lambda: datetime(2199, 1, 1, tzinfo=UTC).timestamp())
        beats.turned("it went wrong")
    beats.turned()
    beats.write("", "", ())
    assert daemon_status(home).state == "works"


def test_a_heartbeat_that_is_removed_again_and_again_costs_no_descriptors(
    home: Home, beats: HeartbeatFile
) -> None:
    beats.write("", "", ())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        (home.run / "heartbeat.json").unlink()
        beats._next = 0.0
        beats.write("", "", ())
    assert len(os.listdir("/proc/self/fd")) == before
