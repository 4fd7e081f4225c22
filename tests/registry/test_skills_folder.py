"""Dropping folders, changing them, taking them away; and folders that try something."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from agentos.errors import Unavailable
from agentos.messages import ToolCard
from agentos.registry.skill_folders.folder import folder_differences
from agentos.registry.skill_folders.skills_folder import FolderOutcome, SkillsFolders
from agentos.registry.store import Registry
from agentos.resources import parse_id
from tests.registry.conftest import SKILL, TOOL

FIXED = TOOL.replace("input.a + input.b", "input.b + input.a")


class Loader:
    """Stands for the sandbox that the daemon tries tools in."""

    def __init__(self) -> None:
        self.calls: list[Sequence[str]] = []
        self.faults: list[str] = []
        self.gone = False

    def __call__(self, files: Mapping[str, bytes], tools: Sequence[str]) -> tuple[list[ToolCard], list[str]]:
        if self.gone:
            raise Unavailable("no sandbox")
        self.calls.append(tools)
        assert set(tools) <= set(files)
        cards = [
            ToolCard(
                path=tool,
                name="x",
                description="",
                effects=[],
                dependencies=[],
                input_schema={},
                output_schema={},
            )
            for tool in tools
        ]
        return cards, self.faults


class World:
    def __init__(self, registry: Registry, place: Path) -> None:
        self.registry, self.place, self.load, self.now = registry, place, Loader(), 0.0
        place.mkdir()
        self.folders = SkillsFolders(registry, [place], self.load)

    def drop(self, name: str = "adding", tool: str = TOOL) -> Path:
        folder = self.place / name
        (folder / "tools").mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_text(SKILL.format(name=name))
        (folder / "tools" / "add_up.py").write_text(tool)
        return folder

    def scan(self) -> list[FolderOutcome]:
        """Two scans with time between, as a person would see it."""
        found = []
        for _ in range(2):
            found += self.folders.scan(self.now)
            self.now += 0.5
        return found

    def text(self, path: str = "skill/adding/tools/add_up.py") -> str:
        return self.registry.files(self.registry.stable(), path).get(path, b"").decode()


@pytest.fixture
def world(registry: Registry, tmp_path: Path) -> World:
    return World(registry, tmp_path / "skills")


ADDING = parse_id("skill/adding")


def test_a_dropped_folder_becomes_a_version_and_goes_with_the_folder(world: World) -> None:
    folder = world.drop()
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("[core]")
    (folder / "tools" / "__pycache__").mkdir()
    (folder / "tools" / "__pycache__" / "x.pyc").write_bytes(b"\0")
    (outcome,) = world.scan()
    assert (outcome.action, outcome.name, outcome.version) == ("imported", "adding", "1.0.0")
    assert [card.path for card in outcome.tools] == ["skill/adding/tools/add_up.py"]
    assert sorted(world.registry.files(world.registry.stable(), "skill/adding")) == [
        "skill/adding/SKILL.md",
        "skill/adding/tools/add_up.py",
    ]
    assert world.scan() == []
    assert SkillsFolders(world.registry, [world.place], world.load).scan(0) == []
    shutil.rmtree(folder)
    (outcome,) = world.scan()
    assert (outcome.action, outcome.version) == ("retired", "1.1.0")
    assert world.text() == ""
    assert world.scan() == []
    world.drop()
    (outcome,) = world.scan()
    assert (outcome.action, outcome.version) == ("imported", "1.2.0")


def test_a_folder_that_is_still_being_copied_waits(world: World) -> None:
    folder = world.drop()
    for number in range(3):
        assert world.folders.scan(world.now) == []
        world.now += 0.2
        (folder / f"part-{number}.txt").write_text("x")
    assert world.folders.scan(world.now) == []
    assert world.folders.scan(world.now + 0.1) == []
    (outcome,) = world.folders.scan(world.now + 0.4)
    assert outcome.action == "imported"
    assert len(world.registry.files(world.registry.stable(), "skill/adding")) == 5


def test_a_changed_folder_is_a_minor_version(world: World) -> None:
    world.drop()
    world.scan()
    world.drop(tool=FIXED)
    (outcome,) = world.scan()
    assert (outcome.action, outcome.version) == ("imported", "1.1.0")


def test_what_was_learnt_survives_an_unchanged_folder_and_is_merged_with_a_changed_one(world: World) -> None:
    folder = world.drop()
    world.scan()
    base = world.registry.stable()
    candidate = world.registry.add_candidate("c-1", base, {"skill/adding/tools/add_up.py": FIXED})
    world.registry.promote(base, candidate, {"Evolution": "evo-1"}, "Learnt")
    assert world.scan() == []
    assert SkillsFolders(world.registry, [world.place], world.load).scan(0) == []
    (folder / "SKILL.md").write_text(SKILL.format(name="adding") + "More.\n")
    (outcome,) = world.scan()
    assert (outcome.action, outcome.version) == ("merged", "1.1.0")
    assert world.text() == FIXED
    assert "More." in world.text("skill/adding/SKILL.md")
    assert world.scan() == []


def test_a_conflict_is_reported_once_and_looked_at_again_when_the_registry_changes(world: World) -> None:
    world.drop()
    world.scan()
    learnt = world.registry.commit({"skill/adding/tools/add_up.py": FIXED.encode()}, "Learnt", "edit")
    world.drop(tool=TOOL.replace("input.a + input.b", "sum([input.a, input.b])"))
    (outcome,) = world.scan()
    assert outcome.action == "refused"
    assert "changed differently on both sides" in outcome.faults[0]
    assert world.registry.stable() == learnt
    assert world.scan() == []
    world.registry.revert(world.registry.plan_undo(ADDING, "1.1.0"), "the folder is right")
    (outcome,) = world.scan()
    assert outcome.action == "imported"
    assert "sum([" in world.text()


def test_a_folder_that_moved_with_its_home_is_the_one_that_was_taken_in(world: World, tmp_path: Path) -> None:
    world.drop("gone")
    folder = world.drop()
    world.scan()
    world.registry.commit({"skill/adding/tools/add_up.py": FIXED.encode()}, "Learnt", "edit")
    world.registry.retire(parse_id("skill/gone"), "no use")
    main = world.registry.stable()
    world.place = world.place.rename(tmp_path / "elsewhere")
    world.folders = SkillsFolders(world.registry, [world.place], world.load)
    assert world.scan() == []
    assert world.registry.stable() == main, "what was learnt stays, and what was retired"
    (world.place / folder.name / "SKILL.md").write_text(SKILL.format(name="adding") + "More.\n")
    (merged,) = world.scan()
    assert merged.action == "merged"
    assert world.text() == FIXED


def test_an_unchanged_folder_does_not_bring_a_retired_skill_back(world: World) -> None:
    world.drop()
    world.scan()
    world.registry.retire(ADDING, "not wanted")
    assert world.scan() == []
    assert world.text() == ""


def test_a_skill_keeps_the_name_that_an_older_release_took_it_in_by(world: World) -> None:
    """0.4.0 left ß out. Under another name it began anew, without what was learnt, and the old one was retired."""
    folder = world.drop("groe")
    world.scan()
    folder = folder.rename(world.place / "Größe")
    world.folders = SkillsFolders(world.registry, [world.place], world.load)
    assert world.scan() == []
    with (folder / "SKILL.md").open("a") as file:
        file.write("More.\n")
    (difference,) = folder_differences(world.registry, [world.place])
    assert (difference.skill, difference.folder) == (parse_id("skill/groe"), folder)
    (outcome,) = world.scan()
    assert (outcome.action, outcome.name, outcome.version) == ("imported", "groe", "1.1.0")
    shutil.rmtree(folder)
    (outcome,) = world.scan()
    assert (outcome.action, outcome.name) == ("retired", "groe")
    world.drop("groe").rename(folder)
    (outcome,) = world.scan()
    assert (outcome.action, outcome.name) == ("imported", "grosse")


def test_a_skill_of_another_origin_is_not_replaced(world: World) -> None:
    world.drop("counting")
    (outcome,) = world.scan()
    assert outcome.action == "refused"
    assert "another skill/counting" in outcome.faults[0]
    assert world.scan() == []


def test_a_bad_folder_is_refused_with_a_sentence_for_each_fault_and_not_tried_again(world: World) -> None:
    before = world.registry.stable()
    folder = world.drop()
    (folder / "SKILL.md").write_text("---\ndescription: ''\n---\n")
    (folder / "tools" / "add_up.py").write_text("def run(:\n")
    (outcome,) = world.scan()
    assert outcome.action == "refused"
    assert len(outcome.faults) == 2
    assert world.scan() == []
    assert world.registry.stable() == before
    world.drop()
    (outcome,) = world.scan()
    assert outcome.action == "imported"
    assert world.load.calls == [("skill/adding/tools/add_up.py",)]


def test_tools_that_do_not_load_refuse_the_folder(world: World) -> None:
    world.load.faults = ["tools/add_up.py: no module named nothing"]
    world.drop()
    (outcome,) = world.scan()
    assert outcome.action == "refused"
    assert outcome.faults == ("tools/add_up.py: no module named nothing",)
    assert world.scan() == []


def test_a_missing_sandbox_is_no_verdict_on_the_folder(world: World) -> None:
    world.load.gone = True
    world.drop()
    with pytest.raises(Unavailable):
        world.scan()
    world.load.gone = False
    world.now += 1
    (outcome,) = world.scan()
    assert outcome.action == "imported"


def test_a_watched_folder_that_vanishes_retires_nothing(world: World) -> None:
    world.drop()
    world.scan()
    world.place.rename(world.place.with_name("elsewhere"))
    assert world.scan() == []
    assert world.text() == TOOL


def test_the_same_skill_in_two_folders_is_retired_with_the_last(world: World, tmp_path: Path) -> None:
    second = World(world.registry, tmp_path / "second")
    folders = SkillsFolders(world.registry, [world.place, second.place], None)
    one, two = world.drop(), second.drop()
    folders.scan(0)
    assert [outcome.action for outcome in folders.scan(1)] == ["imported"]
    shutil.rmtree(one)
    assert folders.scan(2) == []
    assert world.text() == TOOL
    shutil.rmtree(two)
    assert [outcome.action for outcome in folders.scan(3)] == ["retired"]


@pytest.mark.parametrize(
    ("folder", "name"),
    [("Adding", "adding"), ("a--b", "a-b"), ("-a", "a"), ("a_b", "a-b"), ("a" * 65, "a" * 64), ("a\nb", "a-b"),
     ("\u00e4", "a"), ("Next.js (new)", "next-js-new")],
)  # fmt: skip
def test_a_skill_is_called_as_its_folder_is_in_the_form_of_the_specification(
    world: World, folder: str, name: str
) -> None:
    world.drop("other-name").rename(world.place / folder)
    (outcome,) = world.scan()
    assert (outcome.action, outcome.name) == ("imported", name)
    assert any("is called" in warning for warning in outcome.warnings)
    shutil.rmtree(world.place / folder)
    assert [outcome.action for outcome in world.scan()] == ["retired"]


@pytest.mark.parametrize("folder", ["\udcff", "\u8868", "--"])
def test_a_folder_without_a_name_in_letters_is_refused(world: World, folder: str) -> None:
    world.drop().rename(world.place / folder)
    (outcome,) = world.scan()
    assert outcome.action == "refused"
    assert "the name" in outcome.faults[0]


def test_of_two_folders_with_one_name_the_exact_one_counts(world: World) -> None:
    world.drop().rename(world.place / "Adding")
    world.drop()
    found = {outcome.folder.name: outcome.action for outcome in world.scan()}
    assert found == {"adding": "imported", "Adding": "refused"}


def test_all_folders_of_a_scan_are_one_commit_and_a_bad_one_stops_no_other(world: World) -> None:
    before = world.registry.stable().commit
    for number in range(30):
        world.drop(f"adding-{number}")
    (world.drop("bad") / "SKILL.md").write_bytes(b"\xff")
    (world.drop("closed") / "SKILL.md").unlink()
    found = world.scan()
    assert sorted(outcome.name for outcome in found if outcome.action == "refused") == ["bad", "closed"]
    assert {outcome.version for outcome in found if outcome.action == "imported"} == {"1.0.0"}
    repository = world.registry.repository
    assert [str(parent.id) for parent in repository.commit(world.registry.stable().commit).parents] == [
        before
    ]
    assert len(repository.below("refs/tags/skill/adding-7@".rpartition("/")[0] + "/")) >= 30
    assert world.scan() == []
    assert SkillsFolders(world.registry, [world.place], None).scan(0) == []
    report = world.registry.check()
    assert (report.faults, report.repaired) == ((), 0)
    for number in range(25):
        shutil.rmtree(world.place / f"adding-{number}")
    (world.place / "adding-29" / "more.txt").write_text("x")
    assert sorted({(outcome.action, outcome.version) for outcome in world.scan()}) == [
        ("imported", "1.1.0"),
        ("retired", "1.1.0"),
    ]
    assert world.registry.check().faults == ()
    world.registry.repository.run("pack-refs", "--all")
    assert world.scan() == []


def test_no_more_than_a_batch_is_taken_in_at_once(world: World) -> None:
    world.folders.batch = 2
    for name in "abcde":
        world.drop(name)
    world.folders.scan(0)
    assert [len(world.folders.scan(float(number))) for number in range(1, 6)] == [2, 2, 1, 0, 0]


def test_of_many_what_was_tried_for_a_while_is_taken_in(world: World) -> None:
    def load(files: Mapping[str, bytes], tools: Sequence[str]) -> tuple[list[ToolCard], list[str]]:
        world.folders.patience_s = -1.0  # that took long
        return [], []

    world.folders.load = load
    for name in "abc":
        world.drop(name)
    waiting = []
    for number in range(4):
        world.folders.patience_s = 10.0
        world.folders.scan(float(number))
        waiting.append(world.folders.waiting)
    assert waiting == [3, 2, 1, 0]


def test_what_went_or_is_watched_no_longer_is_not_waited_for(world: World, tmp_path: Path) -> None:
    other = tmp_path / "other"
    world.folders.watched.append(other)
    for place in (world.place, other):
        (place / "adding").mkdir(parents=True)
        (place / "adding" / "SKILL.md").write_text(SKILL.format(name="adding"))
    world.folders.scan(0.0)
    assert world.folders.waiting == 2
    shutil.rmtree(world.place / "adding")
    world.folders.watched.remove(other)
    for number in (1.0, 2.0):
        assert world.folders.scan(number, ()) == []
    assert world.folders.waiting == 0


def test_who_knows_what_changed_need_not_have_everything_looked_at(world: World) -> None:
    one, two = world.drop("one"), world.drop("two")
    assert world.folders.scan(0, [one]) == []
    assert world.folders.waiting
    assert [outcome.name for outcome in world.folders.scan(1, ())] == ["one"]
    assert not world.folders.waiting
    assert world.folders.scan(2, ()) == []
    shutil.rmtree(one)
    assert [(outcome.name, outcome.action) for outcome in world.folders.scan(3, [one])] == [
        ("one", "retired")
    ]
    world.folders.scan(4, [two])
    assert [outcome.name for outcome in world.folders.scan(5, ())] == ["two"]


def test_what_editors_leave_behind_is_passed_over(world: World) -> None:
    folder = world.drop()
    for name in ("SKILL.md~", "#SKILL.md#", "a.orig", "b.tmp", ".a.swp", "c.swp", ".DS_Store", ".#lock"):
        (folder / name).write_text("x")
    (outcome,) = world.scan()
    assert (outcome.action, outcome.warnings) == ("imported", ())
    assert len(world.registry.files(world.registry.stable(), "skill/adding")) == 2
    (folder / "SKILL.md~").write_text("y")
    assert world.scan() == []


def test_the_main_file_may_be_written_otherwise(world: World) -> None:
    folder = world.drop()
    (folder / "SKILL.md").rename(folder / "skill.md")
    (outcome,) = world.scan()
    assert outcome.action == "imported"
    assert "skill.md was taken for SKILL.md" in outcome.warnings


def _link(folder: Path) -> None:
    (folder / "tools" / "data.txt").symlink_to("/etc/hostname")


def _directory_link(folder: Path) -> None:
    (folder / "references").symlink_to("/etc")


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


def _socket(folder: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(folder)  # the path of a socket may have 108 bytes only
    try:
        listener.bind("s")
    finally:
        os.chdir(here)
        listener.close()


def _huge(folder: Path) -> None:
    with (folder / "data.bin").open("wb") as file:
        file.truncate(1 << 34)


def _many(folder: Path) -> None:
    for number in range(600):
        (folder / f"{number}.txt").touch()


def _newline(folder: Path) -> None:
    (folder / "a\nb").touch()


def _bytes_name(folder: Path) -> None:
    (folder / "\udcfe.txt").touch()


def _deep(folder: Path) -> None:
    (folder / "/".join("abcdefghijklmn")).mkdir(parents=True)
    (folder / "/".join("abcdefghijklmn") / "x").touch()


@pytest.mark.parametrize("spoil", [_huge, _newline, _bytes_name, _deep])
def test_a_file_that_the_registry_cannot_hold_is_left_out(world: World, spoil: object) -> None:
    spoil(world.drop())  # type: ignore[operator]  # one of the functions above
    (outcome,) = world.scan()
    assert outcome.action == "imported"
    assert "is left out" in outcome.warnings[0]
    assert len(world.registry.files(world.registry.stable(), "skill/adding")) == 2


@pytest.mark.parametrize("spoil", [_link, _directory_link, _pipe, _socket, _many])
def test_what_is_no_plain_file_is_refused_and_never_followed(world: World, spoil: object) -> None:
    before = world.registry.stable()
    spoil(world.drop())  # type: ignore[operator]  # one of the functions above
    (outcome,) = world.scan()
    assert outcome.action == "refused"
    assert world.registry.stable() == before


def test_the_wrong_folder_is_refused_with_few_sentences(world: World) -> None:
    for number in range(100):
        (world.drop() / "tools" / f"{number}").symlink_to("/etc/hostname")
    many = world.place / "many"
    for part in ("a/b/c", "d"):
        (many / part).mkdir(parents=True)
        _many(many / part)
    (first, second) = world.scan()
    assert (first.action, second.action) == ("refused", "refused")
    assert [len(first.faults) < 12, len(set(second.faults))] == [True, len(second.faults)]


def test_a_linked_folder_is_refused(world: World, tmp_path: Path) -> None:
    elsewhere = world.drop().rename(tmp_path / "elsewhere")
    (world.place / "adding").symlink_to(elsewhere)
    (world.place / "all").symlink_to("/")
    assert {outcome.action for outcome in world.scan()} == {"refused"}


def test_files_beside_the_folders_are_nobodys(world: World) -> None:
    (world.place / "README.md").write_text("mine")
    (world.place / ".hidden").mkdir()
    assert world.scan() == []
