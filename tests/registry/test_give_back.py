"""What was learnt goes back to the folder it came from, over nothing that is not committed. Real git."""

from __future__ import annotations

import os
import subprocess
from collections import UserDict
from collections.abc import Callable, ItemsView
from dataclasses import replace
from pathlib import Path

import pytest

from agentos.domain import ResourceId
from agentos.errors import Conflict, ErrorKind, UserError
from agentos.registry.skill_folders import folder
from agentos.registry.skill_folders.folder import (
    DifferenceSide,
    FolderDifference,
    KnownFolders,
    folder_differences,
)
from agentos.registry.skill_folders.give_back import GiveBack, GiveBackResult, give_back
from agentos.registry.skill_folders.skills_folder import SkillsFolders
from agentos.registry.store import Registry
from agentos.resources import parse_id
from tests.refusals import raises
from tests.registry.conftest import SKILL

PROOF = "Read the header as well\n\nMeasured: 3 tasks mended, 0 broken.\n\nEvolution: evo-1\n"
OLD, NEW = SKILL.format(name="adding"), SKILL.format(name="adding") + "\nMind the header.\n"
SKILL_ID: ResourceId = parse_id("skill/adding")


class Place:
    """A skills folder of another agent, in a git repository or not, that a registry watches."""

    def __init__(self, registry: Registry, root: Path) -> None:
        self.registry, self.root, self.watched = registry, root, root / "team" / "skills"
        self.folder = self.watched / "adding"
        self.folders = SkillsFolders(registry, [self.watched], None, settle_s=0.0)
        self.folder.mkdir(parents=True)
        (self.folder / "SKILL.md").write_text(OLD)
        (self.folder / "notes.md").write_text("old notes\n")
        self.scan()

    def scan(self) -> list[str]:
        return [outcome.action for _ in range(2) for outcome in self.folders.scan(1.0)]

    def git(self, *arguments: str) -> str:
        command = [
            "git",
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "-c",
            "init.defaultBranch=main",
            *arguments,
        ]
        return subprocess.run(
            command, cwd=self.root / "team", check=True, capture_output=True, text=True
        ).stdout

    def commit(self) -> None:
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-qm", "first")

    def learn(self, text: str = NEW) -> None:
        self.registry.commit(
            {
                f"{SKILL_ID}/SKILL.md": text.encode(),
                f"{SKILL_ID}/notes.md": None,
                f"{SKILL_ID}/more.md": b"m\n",
            },
            "Read the header as well",
            "edit",
        )

    def difference(self) -> FolderDifference:
        (found,) = folder_differences(self.registry, [self.watched])
        return found

    def give(self, way: GiveBack) -> GiveBackResult:
        return give_back(self.registry, self.difference(), way, PROOF, self.root / "patches")

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.folder.iterdir()}


@pytest.fixture
def place(registry: Registry, tmp_path: Path) -> Place:
    return Place(registry, tmp_path)


def test_which_side_is_ahead(place: Place) -> None:
    def ahead() -> list[DifferenceSide]:
        return [item.ahead for item in folder_differences(place.registry, [place.watched])]

    assert ahead() == []
    place.learn()
    assert ahead() == [DifferenceSide.REGISTRY]
    (place.folder / "SKILL.md").write_text(OLD + "\nTheirs.\n")
    assert ahead() == [DifferenceSide.BOTH]
    place.learn(OLD)
    place.registry.commit(
        {f"{SKILL_ID}/notes.md": b"old notes\n", f"{SKILL_ID}/more.md": None}, "As it was", "edit"
    )
    assert ahead() == [DifferenceSide.FOLDER]
    assert place.scan() == ["imported"]
    assert ahead() == []


def test_a_known_folder_is_read_again_once_anything_in_it_changed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each change is made within the folder's size, and with the times of its files set back."""
    known: KnownFolders = {}

    def ahead() -> list[DifferenceSide]:
        return [item.ahead for item in folder_differences(place.registry, [place.watched], known)]

    notes = place.folder / "notes.md"
    times = notes.stat()
    assert ahead() == []
    assert known == {}, "what changed just now may change again and look the same"
    monkeypatch.setattr(folder, "_SETTLED_NS", 0)
    assert ahead() == []
    assert [*known] == [str(place.folder)]
    monkeypatch.setattr(folder, "read", None)
    assert ahead() == [], "it is not read again"
    monkeypatch.undo()

    notes.write_text("OLD notes\n")
    os.utime(notes, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert ahead() == [DifferenceSide.FOLDER]
    notes.write_text("old notes\n")
    assert ahead() == []
    (place.folder / "more.md").write_text("m\n")
    assert ahead() == [DifferenceSide.FOLDER]
    (place.folder / "more.md").unlink()
    notes.rename(place.folder / "notes2.md")
    assert ahead() == [DifferenceSide.FOLDER]
    (place.folder / "notes2.md").rename(notes)
    known.clear()
    monkeypatch.setattr(folder, "_SETTLED_NS", 0)
    assert ahead() == []
    place.learn()
    assert ahead() == [DifferenceSide.REGISTRY], "the registry went on"


def test_a_folder_that_is_called_otherwise_than_its_skill_gets_it_back(place: Place) -> None:
    place.folder = place.folder.rename(place.watched / "Adding")
    place.scan()
    place.learn()
    assert (place.difference().skill, place.difference().folder) == (SKILL_ID, place.folder)
    place.give(GiveBack.IN_PLACE)
    assert place.files()["SKILL.md"] == NEW
    assert place.scan() == []


@pytest.mark.parametrize("in_git", [True, False])
def test_in_place_writes_the_folder_and_takes_nothing_in_again(place: Place, in_git: bool) -> None:
    if in_git:
        place.commit()
    place.learn()
    (place.folder / "SKILL.md").chmod(0o640)
    assert place.give(GiveBack.IN_PLACE).where == str(place.folder)
    assert place.files() == {"SKILL.md": NEW, "more.md": "m\n"}
    assert (place.folder / "SKILL.md").stat().st_mode & 0o777 == 0o640
    assert not list(folder_differences(place.registry, [place.watched]))
    version = place.registry.latest(SKILL_ID)
    assert place.scan() == []
    assert place.registry.latest(SKILL_ID) == version


def test_a_branch_holds_the_edit_with_its_proof_and_the_worktree_is_left_alone(place: Place) -> None:
    place.commit()
    (place.root / "team" / "other.txt").write_text("somebody is at work here\n")
    place.learn()
    where = place.give(GiveBack.BRANCH).where
    assert where.startswith("agentos/adding (")
    assert place.files() == {"SKILL.md": OLD, "notes.md": "old notes\n"}
    assert place.git("status", "--porcelain").split() == ["??", "other.txt"]
    assert place.git("log", "-1", "--format=%B", "agentos/adding").strip() == PROOF.strip()
    assert place.git("show", "agentos/adding:skills/adding/SKILL.md") == NEW
    assert place.git("diff", "--name-only", "main", "agentos/adding").split() == [
        f"skills/adding/{name}" for name in ("SKILL.md", "more.md", "notes.md")
    ]
    assert place.give(GiveBack.BRANCH).where == where  # once more changes nothing
    place.learn(NEW + "\nAnd the footer.\n")
    place.give(GiveBack.BRANCH)
    assert place.git("rev-list", "--count", "main..agentos/adding").strip() == "2"
    place.git("merge", "-q", "agentos/adding")
    assert place.scan() == []  # what comes back is what was given
    assert not list(folder_differences(place.registry, [place.watched]))


def test_a_patch_applies(place: Place) -> None:
    place.commit()
    place.learn()
    path = Path(place.give(GiveBack.PATCH).where)
    place.git("am", "-q", str(path))
    assert place.files() == {"SKILL.md": NEW, "more.md": "m\n"}
    assert "Measured: 3 tasks mended" in place.git("log", "-1", "--format=%B")


def change(place: Place) -> None:
    (place.folder / "SKILL.md").write_text(OLD + "\nMine, not committed.\n")


def stage(place: Place) -> None:
    change(place)
    place.git("add", "-A")
    (place.folder / "SKILL.md").write_text(OLD)


def add(place: Place) -> None:
    (place.folder / "mine.md").write_text("not committed\n")


def check_out(place: Place) -> None:
    place.git("checkout", "-qb", "agentos/adding")


@pytest.mark.parametrize("way", [GiveBack.BRANCH, GiveBack.IN_PLACE])
@pytest.mark.parametrize("spoil", [change, stage, add])
def test_nothing_that_is_not_committed_is_written_over(
    place: Place, way: GiveBack, spoil: Callable[[Place], None]
) -> None:
    place.commit()
    place.learn()
    spoil(place)
    before, refs = place.files(), place.git("for-each-ref")
    with pytest.raises(Conflict):
        place.give(way)
    assert (place.files(), place.git("for-each-ref")) == (before, refs)


def test_line_ends_that_git_converts_are_no_change_that_somebody_forgot(place: Place) -> None:
    place.git("init", "-q")
    place.git("config", "core.autocrlf", "true")
    (place.folder / "notes.md").write_bytes(b"new notes\r\n")
    place.scan()
    place.git("add", "-A")
    place.git("commit", "-qm", "first")
    place.learn()
    for way in (GiveBack.BRANCH, GiveBack.IN_PLACE):
        with raises(Conflict, message="give_back.line_ends", hidden={"root": place.root}):
            place.give(way)


def test_a_submodule_in_the_folder_is_no_file_of_the_skill(place: Place) -> None:
    place.commit()
    place.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},skills/adding/other")
    place.git("commit", "-qm", "second")
    place.learn()
    assert place.give(GiveBack.BRANCH).way is GiveBack.BRANCH


def lose_an_object(git: Path, blob: str) -> None:
    (git / "objects" / blob[:2] / blob[2:]).unlink()


def take_the_name(git: Path, _: str) -> None:
    (git / "refs" / "heads" / "agentos").write_bytes((git / "refs" / "heads" / "main").read_bytes())


def leave_a_lock(git: Path, _: str) -> None:
    (git / "refs" / "heads" / "agentos").mkdir()
    (git / "refs" / "heads" / "agentos" / "adding.lock").touch()


@pytest.mark.parametrize("harm", [lose_an_object, take_the_name, leave_a_lock])
def test_what_is_wrong_with_a_repository_is_told(place: Place, harm: Callable[[Path, str], None]) -> None:
    place.commit()
    place.learn()
    blob = place.git("rev-parse", "HEAD:skills/adding/notes.md").strip()
    harm(place.root / "team" / ".git", blob)
    with pytest.raises(UserError):
        place.give(GiveBack.BRANCH)


def test_a_patch_of_a_text_in_another_encoding_applies(place: Place) -> None:
    old, new = (text.encode("latin-1") for text in ("Notizen für alle\n", "Notizen für Ärzte\n"))
    (place.folder / "notes.md").write_bytes(old)
    place.scan()
    place.commit()
    place.registry.commit({f"{SKILL_ID}/notes.md": new}, "Name them", "edit")
    place.git("apply", place.give(GiveBack.PATCH).where)
    assert (place.folder / "notes.md").read_bytes() == new


def test_where_a_way_cannot_be_gone_nothing_happens(place: Place) -> None:
    place.learn()
    with raises(
        UserError, type_next="agentos adopt", message="give_back.no_repository", hidden={"root": place.root}
    ):
        place.give(GiveBack.BRANCH)
    with raises(UserError, message="give_back.none", hidden={"root": place.root}):
        place.give(GiveBack.NONE)
    place.git("init", "-q")
    for way in (GiveBack.BRANCH, GiveBack.IN_PLACE):
        with raises(Conflict, message="give_back.no_commit", hidden={"root": place.root}):
            place.give(way)
    place.commit()
    check_out(place)
    with raises(Conflict, ErrorKind.AT_WORK):
        place.give(GiveBack.BRANCH)
    assert place.files() == {"SKILL.md": OLD, "notes.md": "old notes\n"}


def test_a_repository_s_own_programs_are_not_run(place: Place) -> None:
    place.commit()
    place.learn()
    trap = place.root / "trap"
    for name in ("pre-commit", "post-commit", "reference-transaction", "post-checkout"):
        hook = place.root / "team" / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {trap}\n")
        hook.chmod(0o755)
    with (place.root / "team" / ".git" / "config").open("a") as file:
        file.write(f'[core]\n\tfsmonitor = "touch {trap}"\n[filter "x"]\n\tclean = "touch {trap}"\n')
    (place.root / "team" / ".git" / "info" / "attributes").write_text("* filter=x\n")
    place.give(GiveBack.BRANCH)
    place.learn(NEW + "\nmore\n")
    place.give(GiveBack.IN_PLACE)
    assert not trap.exists()


def test_a_link_in_the_way_leads_nowhere_else(place: Place, tmp_path: Path) -> None:
    place.learn()
    difference = place.difference()
    outside = tmp_path / "outside.md"
    outside.write_text("mine\n")
    (place.folder / "more.md").symlink_to(outside)
    with pytest.raises(Conflict):
        give_back(place.registry, difference, GiveBack.IN_PLACE, PROOF, tmp_path / "patches")
    assert outside.read_text() == "mine\n"


@pytest.mark.slow
def test_a_commit_that_a_person_makes_on_the_branch_meanwhile_stays(place: Place) -> None:
    place.commit()
    place.learn()
    place.git("branch", "agentos/adding")
    found = place.difference()

    class Slow(UserDict[str, bytes]):
        """Read after the branch was looked at."""

        def items(self) -> ItemsView[str, bytes]:
            theirs = place.git("commit-tree", "-p", "HEAD", "-m", "mine", "HEAD^{tree}").strip()
            place.git("update-ref", "refs/heads/agentos/adding", theirs)
            return super().items()

    late = replace(found, ours=Slow(found.ours))
    with pytest.raises(UserError):
        give_back(place.registry, late, GiveBack.BRANCH, PROOF, place.root / "patches")
    assert place.git("log", "-1", "--format=%s", "agentos/adding").strip() == "mine"
    place.give(GiveBack.BRANCH)
    assert place.git("log", "-2", "--format=%s", "agentos/adding").splitlines()[1] == "mine"
