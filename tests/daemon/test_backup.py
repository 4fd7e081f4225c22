"""Backups of a home that is written to, damaged backups, and homes made from them."""

from __future__ import annotations

import io
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import threading
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentos.daemon.control.daemon_lock import DaemonLock
from agentos.daemon.setup import init_home
from agentos.daemon.upkeep.backup import back_up, restore, verify_backup
from agentos.domain import Call, Limits, Share, Task
from agentos.errors import AgentOSError, HomeBusy, Invalid, Unavailable, UserError
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from tests.cli.evolved_home import evolve_home
from tests.refusals import raises


@pytest.fixture(scope="session")
def evolved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("backed") / "home"
    init_home(Home(root))
    evolve_home(Home(root))
    return root


@pytest.fixture
def home(evolved: Path, tmp_path: Path) -> Home:
    shutil.copytree(evolved, tmp_path / "home")
    return Home(tmp_path / "home")


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _task(number: int) -> Task:
    call = Call("calc/grade", {"points": number})
    name = f"more-{number}"
    return Task(f"task-{name}", name, "Grade", call, (), "default", Limits(), (), (), None, NOW)


@pytest.mark.parametrize("name", ["home.tar", "home.tgz"])
@pytest.mark.slow
def test_what_is_restored_is_what_was_there(home: Home, tmp_path: Path, name: str) -> None:
    (home.skills / "mine").mkdir()
    (home.skills / "mine" / "SKILL.md").write_text("---\nname: mine\n---\n")
    (home.skills / "mine" / "link").symlink_to("/etc/passwd")
    home.settings.write_text(home.settings.read_text() + "\n# kept\n")
    made = back_up(home, tmp_path / name)
    again = Home(tmp_path / "again")
    audited, old = restore(again, tmp_path / name)
    assert audited.faults == ()
    assert old is None
    assert audited.head == Reader(home.ledger).head()
    assert audited.promotions == 1
    assert Registry(again.registry).stable() == Registry(home.registry).stable()
    assert Registry(again.registry).last_good() == Registry(home.registry).last_good()
    assert Registry(again.registry).check().faults == Registry(home.registry).check().faults == ()
    assert again.settings.read_bytes() == home.settings.read_bytes()
    assert again.consent_key.read_bytes() == home.consent_key.read_bytes()
    assert again.consent_key.stat().st_mode & 0o777 == 0o600
    assert "skills/mine/SKILL.md" in made.files
    assert "skills/mine/link" not in made.files
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.slow
def test_a_home_that_is_written_to_is_whole_at_every_moment(home: Home, tmp_path: Path) -> None:
    stop = threading.Event()

    def write() -> None:
        ledger, number = Ledger(home.ledger), 0
        while not stop.is_set():
            number += 1
            sha256 = ledger.blobs.put(os.urandom(9_000))
            task = _task(number)
            ledger.add_task(task, Share.OPEN)
            ledger.note("test.wrote", task.id, {"blob": sha256})
            time.sleep(0.002)
        ledger.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        counts = []
        for number in range(4):
            back_up(home, tmp_path / f"{number}.tar")
            audited, _ = restore(Home(tmp_path / f"again-{number}"), tmp_path / f"{number}.tar")
            assert audited.faults == ()
            counts.append(audited.head.count)
    finally:
        stop.set()
        writer.join()
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_a_log_that_was_cut_is_cut_in_the_restored_home_too(home: Home, tmp_path: Path) -> None:
    with closing(sqlite3.connect(home.ledger)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("DELETE FROM audit WHERE seq > 5")
        connection.commit()
    back_up(home, tmp_path / "cut.tar")
    audited, _ = restore(Home(tmp_path / "again"), tmp_path / "cut.tar")
    assert any("cut short" in fault for fault in audited.faults)


def _rewritten(source: Path, target: Path, change: dict[str, bytes], add: dict[str, bytes]) -> None:
    with tarfile.open(source) as old, tarfile.open(target, "w") as new:
        for member in old:
            data = old.extractfile(member).read()  # type: ignore[union-attr]
            data = change.get(member.name, data)
            member.size = len(data)
            new.addfile(member, io.BytesIO(data))
        for name, data in add.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            new.addfile(info, io.BytesIO(data))


@pytest.mark.slow
def test_a_damaged_backup_is_told_and_changes_nothing(home: Home, tmp_path: Path) -> None:
    whole = tmp_path / "whole.tar"
    back_up(home, whole)
    files = verify_backup(whole).files
    data = whole.read_bytes()
    bad = tmp_path / "bad.tar"
    again = Home(tmp_path / "again")

    def refused() -> None:
        with pytest.raises(AgentOSError):
            restore(again, bad)
        assert not again.root.exists()
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]

    for length in (0, 100, 512, len(data) // 3, len(data) // 2, len(data) - 20_000):
        bad.write_bytes(data[:length])
        refused()
    for place in range(700, len(data) - 12_000, len(data) // 25):
        bad.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            read = verify_backup(bad)
        except AgentOSError:
            continue
        assert read.files == files  # a bit in the padding of a tar header is no damage
    for name in ("../outside", "/etc/cron.d/x", "a/../../b"):
        _rewritten(whole, bad, {}, {name: b"x"})
        refused()
        assert not (tmp_path / "outside").exists()
    _rewritten(whole, bad, {}, {"extra": b"x"})
    refused()
    _rewritten(whole, bad, {"consent.key": b"x" * 32}, {})
    refused()
    _rewritten(whole, bad, {"manifest.json": b"[]"}, {})
    refused()
    _rewritten(whole, bad, {"manifest.json": b"{"}, {})
    refused()
    bad.unlink()
    bad.symlink_to("/dev/null")
    refused()


def test_a_packed_backup_with_a_wrong_bit_is_told(tmp_path: Path) -> None:
    whole, bad = io.BytesIO(), tmp_path / "bad.tgz"
    with tarfile.open(fileobj=whole, mode="w:gz") as tar:
        info = tarfile.TarInfo("notes")
        info.size = 60_000
        tar.addfile(
            info, io.BytesIO(b"".join(b"%d " % (number * number) for number in range(9_000))[:60_000])
        )
    data = whole.getvalue()
    for place in range(600, len(data), 300):
        bad.write_bytes(data[:place] + b"\xff" * 8 + data[place + 8 :])
        with pytest.raises(Invalid):
            verify_backup(bad)


@pytest.mark.slow
def test_nothing_is_overwritten(home: Home, tmp_path: Path) -> None:
    target = tmp_path / "home.tar"
    target.write_text("mine")
    with pytest.raises(UserError):
        back_up(home, target)
    assert target.read_text() == "mine"
    with pytest.raises(UserError):
        back_up(home, home.root / "inside.tar")
    (tmp_path / "link").symlink_to(home.skills)
    with pytest.raises(UserError):
        back_up(home, tmp_path / "link" / "inside.tar")
    with pytest.raises(UserError):
        back_up(Home(tmp_path / "nowhere"), tmp_path / "x.tar")
    back_up(home, target, replace=True)
    with pytest.raises(UserError):
        restore(home, target)
    before = Registry(home.registry).stable()
    lock = DaemonLock(home)
    try:
        with pytest.raises(HomeBusy):
            restore(home, target, replace=True)
    finally:
        lock.release()
    assert Registry(home.registry).stable() == before
    Ledger(home.ledger).note("test.later", "later", {})
    audited, old = restore(home, target, replace=True)
    assert audited.faults == ()
    assert old is not None
    assert Reader(Home(old).ledger).head().count == audited.head.count + 1
    again = [restore(home, target, replace=True)[1] for _ in range(3)]  # some of them within one second
    assert len({old, *again}) == 4
    assert all(place is not None and Home(place).is_there for place in again)


@pytest.mark.parametrize("name", ["AGENTOS_DATABASE", "AGENTOS_BLOBS"])
def test_nothing_is_restored_beside_a_ledger_that_a_variable_names(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    back_up(home, tmp_path / "a.tar")
    monkeypatch.setenv(name, "postgresql://agentos@/live")
    with raises(UserError, names=[name]):
        restore(Home(tmp_path / "again"), tmp_path / "a.tar")
    assert not (tmp_path / "again").exists()


@pytest.mark.slow
def test_a_backup_that_is_killed_leaves_no_file_by_its_name(home: Home, tmp_path: Path) -> None:
    for number in range(40):
        (home.skills / f"big-{number}").write_bytes(os.urandom(1 << 20))
    target = tmp_path / "killed.tar"
    program = "import sys; from pathlib import Path; from agentos.daemon.upkeep.backup import back_up; from agentos.home import Home; print('go', flush=True); back_up(Home(Path(sys.argv[1])), Path(sys.argv[2]))"
    for after in (0.05, 0.15, 0.3):
        with subprocess.Popen(
            [sys.executable, "-c", program, str(home.root), str(target)], stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(after)
            child.kill()
        if target.exists():
            verify_backup(target)
            target.unlink()
    back_up(home, target)
    audited, _ = restore(Home(tmp_path / "again"), target)
    assert audited.faults == ()


def test_a_task_that_waits_is_there_after_the_restore(home: Home, tmp_path: Path) -> None:
    ledger = Ledger(home.ledger)
    ledger.add_task(replace(_task(1), name="waits"), Share.OPEN)
    ledger.close()
    back_up(home, tmp_path / "home.tar")
    restore(Home(tmp_path / "again"), tmp_path / "home.tar")
    assert Reader(tmp_path / "again" / "ledger.db").task_view("task-more-1").task.name == "waits"


@pytest.mark.slow
def test_a_backup_of_an_older_release_is_brought_up_to_date(home: Home, tmp_path: Path) -> None:
    with closing(sqlite3.connect(home.ledger)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0012'")  # since when no table changed
    back_up(home, tmp_path / "home.tar")
    audited, _ = restore(Home(tmp_path / "again"), tmp_path / "home.tar")
    assert audited.faults == ()
    assert Reader(tmp_path / "again" / "ledger.db").head() == audited.head


@pytest.mark.slow
def test_a_home_may_lie_in_a_folder_of_any_name(home: Home, tmp_path: Path) -> None:
    odd = tmp_path / "50%41 a#b?c"
    odd.mkdir()
    shutil.move(home.root, odd)
    head = Reader(odd / "home" / "ledger.db").head()
    assert back_up(Home(odd / "home"), tmp_path / "home.tar").head == str(head)
    audited, _ = restore(Home(odd / "again"), tmp_path / "home.tar")
    assert (audited.head, audited.faults) == (head, ())
    assert sorted(path.name for path in tmp_path.iterdir()) == [odd.name, "home.tar"]


def test_what_is_no_archive_is_told_in_one_line(tmp_path: Path) -> None:
    for content in (b"", b"no archive\n", bytes(range(256)) * 40):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(AgentOSError) as caught:
            verify_backup(tmp_path / "file")
        assert "\n" not in str(caught.value)
    with pytest.raises(Unavailable) as refused:
        verify_backup(tmp_path)
    assert "Errno" not in str(refused.value)


@pytest.mark.parametrize(
    "document",
    ['{"format": 1, "files": {"a": 3}}', '{"format": 1, "files": {"a": [1]}}', '{"format": 1, "files": {}}'],
)
def test_a_manifest_that_is_none_of_ours_is_told(tmp_path: Path, document: str) -> None:
    with tarfile.open(tmp_path / "home.tar", "w") as tar:
        member = tarfile.TarInfo("manifest.json")
        member.size = len(document)
        tar.addfile(member, io.BytesIO(document.encode()))
    with raises(Invalid, names=["manifest"]):
        verify_backup(tmp_path / "home.tar")


@pytest.mark.parametrize("content", ["garbage\n", "", "1234567890123456789012345678901234567890\n"])
def test_one_reference_that_leads_nowhere_keeps_no_home_from_being_backed_up(
    home: Home, tmp_path: Path, content: str
) -> None:
    broken = home.registry / "refs" / "candidates" / "evo-broken"
    broken.parent.mkdir(parents=True, exist_ok=True)
    broken.write_text(content)
    assert back_up(home, tmp_path / "home.tar").left_out == ("refs/candidates/evo-broken",)
    _, _ = restore(Home(tmp_path / "again"), tmp_path / "home.tar")
    assert Registry(tmp_path / "again" / "registry.git").stable() == Registry(home.registry).stable()


def test_what_somebody_put_there_by_the_name_of_a_database_is_kept_as_it_is(
    home: Home, tmp_path: Path
) -> None:
    (home.root / "notes.db").write_text("no database")
    (home.root / "more.db").mkdir()
    (home.root / "more.db" / "a").write_text("b")
    with closing(sqlite3.connect(home.root / "own.db")) as own:
        own.execute("CREATE TABLE a (b)")
    again = Home(tmp_path / "again")
    back_up(home, tmp_path / "home.tar")
    restore(again, tmp_path / "home.tar")
    assert (again.root / "notes.db").read_text() == "no database"
    assert (again.root / "more.db" / "a").read_text() == "b"
    with closing(sqlite3.connect(again.root / "own.db")) as own:
        assert own.execute("SELECT name FROM sqlite_schema").fetchall() == [("a",)]


def test_a_home_that_cannot_be_made_where_it_is_to_be_is_told(home: Home, tmp_path: Path) -> None:
    back_up(home, tmp_path / "home.tar")
    (tmp_path / "file").write_text("somebody's")
    with pytest.raises(UserError, match="no folder"):
        restore(Home(tmp_path / "file"), tmp_path / "home.tar")
    with pytest.raises(AgentOSError):
        restore(Home(tmp_path / "file" / "home"), tmp_path / "home.tar")
    assert (tmp_path / "file").read_text() == "somebody's"
