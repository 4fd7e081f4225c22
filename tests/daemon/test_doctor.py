"""What the doctor says of a home where things lie that it did not expect, and what it leaves alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from agentos.daemon.control.daemon_lock import DaemonLock, daemon_info
from agentos.daemon.upkeep.doctor import DoctorFinding, _git, _mend, examine
from agentos.errors import Unavailable
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.ledger.store import Ledger
from agentos.registry.git import NO_GIT
from agentos.registry.store import Registry


def told(home: Home, *, fix: bool = False) -> list[str]:
    return [finding.what for finding in examine(home, fix=fix)]


def aged(path: Path) -> Path:
    os.utime(path, (time.time() - 3_600,) * 2)
    return path


def half_written(home: Home) -> Path:
    path = home.root / "agentos.toml.0a1b2c3d.new"
    path.write_text("x")
    return aged(path)


@pytest.mark.parametrize("name", ["engine.db", "consent.key"])
def test_a_folder_where_a_file_belongs_keeps_no_other_look_from_being_told(home: Home, name: str) -> None:
    place = home.root / name
    place.unlink(missing_ok=True)
    place.mkdir()
    left = half_written(home)
    found = told(home)
    assert any(str(left) in what for what in found)
    assert any(name.replace(".", " ").split()[0] in what for what in found)


def test_what_the_last_look_kept_may_be_anything(home: Home) -> None:
    home.run.mkdir(exist_ok=True)
    (home.run / "settings.json").write_text("3")
    assert not any("TypeError" in what for what in told(home))


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_what_cannot_be_mended_keeps_nothing_else_from_being_mended(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that another one is mounted on can be removed by nobody."""
    goes = half_written(home).rename(home.root / "z.new")
    stays = half_written(home)
    subprocess.run(["mount", "--bind", stays, stays], check=True)
    try:
        found = examine(home, fix=True)
    finally:
        subprocess.run(["umount", stays], check=True)
    by_path = {path: one for one in found for path in (stays, goes) if str(path) in one.what}
    assert not by_path[stays].mended
    assert by_path[goes].mended
    assert not goes.exists()


def test_a_folder_of_blobs_that_was_taken_away_is_told_and_not_made_anew(home: Home) -> None:
    """What the ledger names lies in it; a new one would say so of a single run at a time."""
    assert not any(str(home.blobs) in what for what in told(home))
    shutil.rmtree(home.blobs)
    with pytest.raises(Unavailable):
        BlobStore(home.blobs).put(b"x")
    assert not home.blobs.exists()
    assert any(str(home.blobs) in what for what in told(home))
    home.blobs.mkdir()
    assert BlobStore(home.blobs).put(b"x")


def test_what_is_being_written_at_this_moment_is_no_leftover(home: Home) -> None:
    now = home.root / "agentos.toml.0a1b2c3d.new"
    now.write_text("x")
    (home.root / "a folder.new").mkdir()
    (home.blobs / "tmp").mkdir(exist_ok=True)
    (home.blobs / "tmp" / "0a1b").write_text("x")
    assert not any("half-written" in what for what in told(home, fix=True))
    aged(now), aged(home.blobs / "tmp" / "0a1b")
    assert len([what for what in told(home, fix=True) if "half-written" in what]) == 2
    assert not now.exists()
    assert not any((home.blobs / "tmp").iterdir())


def test_a_daemon_that_started_since_is_not_forgotten(home: Home) -> None:
    home.run.mkdir(exist_ok=True)
    killed = DaemonLock(home)
    note = (home.run / "daemon.json").read_text()
    killed.release()
    (home.run / "daemon.json").write_text(
        note.replace(f'"pid": {os.getpid()}', '"pid": 4194303').replace(f"-{os.getpid()}-", "-4194303-")
    )
    (killed_one,) = [one for one in examine(home, fix=False) if "was killed" in one.what]
    lock = DaemonLock(home)
    try:
        assert killed_one.mend is not None
        killed_one.mend()
        info = daemon_info(home)
        assert info is not None
        assert info.alive
    finally:
        lock.release()


def test_a_variable_that_is_no_setting_is_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    (home.root / "agentos.toml").write_text('run_uid = 61321\n[providers.own]\nkey_env = "AGENTOS_OWN_KEY"\n')
    monkeypatch.setenv("AGENTOS_PARALEL", "4")
    monkeypatch.setenv("AGENTOS_OWN_KEY", "secret")
    monkeypatch.setenv("AGENTOS_BUDGET__DAY_USD", "3")
    (found,) = [what for what in told(home) if "variable" in what]
    assert "AGENTOS_PARALLEL" in found
    assert "AGENTOS_PARALEL " in found


def test_a_probe_that_failed_without_an_undo_names_none(home: Home, ledger: Ledger) -> None:
    main = Registry(home.registry).stable().commit
    held = {"main": main, "served": main, "why": "it fell", "failed": True, "undo": ""}
    ledger.set_kv("swap.held", held)
    (found,) = [what for what in told(home) if "it fell" in what]
    assert "``" not in found


def test_what_other_programs_of_ours_left_in_the_place_for_temporary_files_is_found(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    names = ["agentos-mirror-abcd1234", "agentos-filed-abcd1234", "agentos-abcd1234.pem"]
    for name in names:
        (tmp_path / name).mkdir() if "." not in name else (tmp_path / name).write_text("key")
        os.utime(tmp_path / name, (0, 0))
    found = told(home, fix=True)
    assert [name for name in names if any(name in what for what in found)] == names
    assert not [name for name in names if (tmp_path / name).exists()]


def test_a_finding_says_when_what_it_found_stays() -> None:
    assert not _mend(DoctorFinding("it is there", lambda: True)).mended
    assert _mend(DoctorFinding("it is there", lambda: None)).mended


def test_a_machine_without_git_is_told(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [NO_GIT in finding.what for finding in _git(home)] == [True]
    with pytest.raises(Unavailable) as told:
        Registry(home.registry).repository.run("version")
    assert str(told.value) == NO_GIT
