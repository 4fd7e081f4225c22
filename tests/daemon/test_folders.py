"""What the operating system tells of skills folders, and what becomes of it."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest

from agentos.daemon.intake import folders
from agentos.daemon.intake.adopting import AdoptedFolder, adopt_folder, release_folder
from agentos.daemon.intake.folders import Folders, FolderWatch
from agentos.daemon.service import service
from agentos.home import Home
from agentos.settings import load_settings

SKILL = "---\nname: {name}\ndescription: Rolls dice.\n---\n\n# Dice\n"


def told_of(watch: FolderWatch, skill: Path, now: float) -> set[Path]:
    """What is told of while a file of the skill changes."""
    until = time.monotonic() + 30
    for number in itertools.count():
        (skill / "references").mkdir(parents=True, exist_ok=True)
        (skill / "references" / "a.txt").write_text(str(number))
        found = watch.changed(now) or set()
        if found or time.monotonic() > until:
            return found
        time.sleep(0.05)
    raise AssertionError


def test_a_change_below_a_skill_is_told_with_the_skills_folder(tmp_path: Path) -> None:
    watch = FolderWatch([tmp_path, tmp_path / "missing"])
    assert watch.changed(0.0) is None, "it has only begun"
    assert told_of(watch, tmp_path / "dice", 100.0) == {tmp_path / "dice"}


def test_a_folder_that_is_put_in_the_place_of_a_watched_one_is_watched(tmp_path: Path) -> None:
    place = tmp_path / "skills"
    place.mkdir()
    watch = FolderWatch([place])
    watch.changed(0.0)
    told_of(watch, place / "dice", 100.0)
    place.rename(tmp_path / "old")
    place.mkdir()
    until = time.monotonic() + 30
    while watch.changed(200.0) is not None and time.monotonic() < until:
        time.sleep(0.05)  # None: it has only begun, again
    assert told_of(watch, place / "dice", 300.0) == {place / "dice"}


def test_where_nothing_can_be_watched_everything_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(folders, "watch", refuse)
    watch = FolderWatch([tmp_path])
    watch.changed(0.0)
    until = time.monotonic() + 30
    while watch.changed(100.0) is not None and time.monotonic() < until:
        time.sleep(0.01)
    assert watch.changed(100.0) is None


def test_a_folder_that_is_watched_no_longer_is_refused_no_more(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(100.0, 2.0)
    monkeypatch.setattr(folders.time, "monotonic", lambda: next(clock))
    wrong = tmp_path / "wrong"
    (wrong / "bad").mkdir(parents=True)
    with service(home, load_settings(home.settings)) as parts:
        adopt_folder(parts.ledger, AdoptedFolder(str(wrong)))
        watched = Folders(parts)
        for _ in range(3):
            watched.scan()
        assert list(parts.ledger.get_kv(folders.REFUSED)) == [str(wrong / "bad")]
        release_folder(parts.ledger, str(wrong))
        watched.scan()
        assert parts.ledger.get_kv(folders.REFUSED) == {}


def test_dropped_folders_are_taken_in_and_stand_in_the_audit_log(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(100.0, 2.0)
    monkeypatch.setattr(folders.time, "monotonic", lambda: next(clock))
    with service(home, load_settings(home.settings)) as parts:
        watched = Folders(parts)
        for name in ["dice", *(f"dice-{number}" for number in range(25))]:
            (home.skills / name).mkdir()
            (home.skills / name / "SKILL.md").write_text(SKILL.format(name=name))
        (home.skills / "bad").mkdir()
        for number in range(7):
            (home.skills / "dice" / f"Größe{number}.txt").touch()
        watched.scan()
        assert parts.ledger.get_kv(folders.WAITING) == 27
        for _ in range(2):
            watched.scan()
        assert list(parts.ledger.get_kv(folders.REFUSED)) == [str(home.skills / "bad")]
        assert parts.ledger.get_kv(folders.WAITING) == 0
        ((folder, left_out),) = parts.ledger.get_kv(folders.LEFT_OUT).items()
        assert folder == str(home.skills / "dice")
        assert "Größe0.txt" in left_out[0]
        assert left_out[-1] == "and 2 more"
        (noted,) = [entry for entry in parts.ledger.entries() if entry.event == "skill.imported"]
        assert noted.subject == "26 skills"
        (home.skills / "bad" / "SKILL.md").write_text(SKILL.format(name="bad"))
        for _ in range(60):
            watched.scan()
        assert parts.ledger.get_kv(folders.REFUSED) == {}
        assert [entry.subject for entry in parts.ledger.entries() if entry.event == "skill.imported"][1:] == [
            "skill/bad"
        ]
        taken = (home.skills / "dice" / "SKILL.md").read_text()
        for text, refused in (("---", [str(home.skills / "dice")]), (taken, [])):  # broken, and undone again
            (home.skills / "dice" / "SKILL.md").write_text(text)
            for _ in range(60):
                watched.scan()
            assert list(parts.ledger.get_kv(folders.REFUSED)) == refused
        # what is unchanged is told again after a restart
        again = Folders(parts)
        assert parts.ledger.get_kv(folders.LEFT_OUT) == {}
        for _ in range(3):
            again.scan()
        assert list(parts.ledger.get_kv(folders.LEFT_OUT)) == [str(home.skills / "dice")]
