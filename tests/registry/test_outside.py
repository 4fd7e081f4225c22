"""What comes from outside: releases, pushes with plain git, and damage."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from pathlib import Path

import pygit2
import pytest
from pygit2.enums import ObjectType

from agentos.errors import ErrorKind, Invalid, Unavailable, lacking
from agentos.registry.check import leftovers, sweep
from agentos.registry.git import versions as history
from agentos.registry.git.repository import INCOMING, REFUSED
from agentos.registry.push_inbox import Push
from agentos.registry.store import Registry
from agentos.registry.upgrade import UpgradeChoice
from agentos.resources import parse_id
from agentos.resources.documents import FILE_MAX, FILES_MAX, PINS_FILE
from tests.refusals import raises
from tests.registry.conftest import SEED, TOOL

ADD = parse_id("tool/add-up")
PROMPT = parse_id("prompt/default")
PATH = "tool/add-up/tool.py"
TEXT = "prompt/default/prompt.md"
FIXED = TOOL.replace("input.a + input.b", "input.b + input.a").encode()


def text(registry: Registry, path: str) -> bytes:
    return registry.files(registry.stable(), path).get(path, b"")


def actions(
    registry: Registry, files: dict[str, bytes], choice: UpgradeChoice | None = None
) -> dict[str, str]:
    return {str(item.resource): item.action for item in registry.upgrade(files, "2.0", choice).items}


# --- upgrades ---------------------------------------------------------------------------------


def test_an_upgrade_to_the_same_content_does_nothing(registry: Registry) -> None:
    before = registry.stable()
    registry.commit({PATH: FIXED}, "Learnt", "edit")
    after = registry.stable()
    assert actions(registry, SEED) == {}
    assert registry.stable() == after != before


def test_an_upgrade_takes_what_is_new_and_keeps_what_was_learnt(registry: Registry) -> None:
    registry.commit({PATH: FIXED}, "Learnt", "edit")
    release = {
        **SEED,
        TEXT: b"Do it.\nCheck it.\nSay it well.\n",
        "tool/add-up/resource.toml": b'description = "Adds two numbers."\n',
        "memory/default/memory.md": b"# Lessons\n",
        "memory/default/resource.toml": b'description = "Lessons."\n',
    }
    for path in [path for path in release if path.startswith("skill/")]:
        del release[path]
    assert actions(registry, release) == {
        "memory/default": "taken",
        "prompt/default": "taken",
        "skill/counting": "retired",
        "tool/add-up": "merged",
    }
    assert text(registry, PATH) == FIXED
    assert b"two numbers" in text(registry, "tool/add-up/resource.toml")
    assert registry.versions(ADD)[0].origin == "upgrade"
    assert [version.number for version in registry.versions(ADD)] == ["1.2.0", "1.1.0", "1.0.0"]
    now = registry.stable()
    assert actions(registry, release) == {}
    assert registry.stable() == now
    assert registry.check().faults == ()


def test_a_conflict_changes_nothing_and_is_reported_until_somebody_chooses(registry: Registry) -> None:
    registry.commit({TEXT: b"Do it my way.\nCheck it.\nSay it.\n"}, "Mine", "edit")
    release = {**SEED, TEXT: b"Do it their way.\nCheck it.\nSay it.\n", PATH: FIXED}
    assert actions(registry, release) == {"prompt/default": "conflict", "tool/add-up": "taken"}
    assert b"my way" in text(registry, TEXT)
    assert actions(registry, release) == {"prompt/default": "conflict"}
    assert actions(registry, release, UpgradeChoice(keep=[PROMPT])) == {"prompt/default": "kept"}
    assert actions(registry, release) == {}
    assert b"my way" in text(registry, TEXT)
    newer = {**release, TEXT: b"Do it otherwise.\nCheck it.\nSay it.\n"}
    assert actions(registry, newer) == {"prompt/default": "conflict"}
    assert actions(registry, newer, UpgradeChoice(take=[PROMPT])) == {"prompt/default": "taken"}
    assert b"otherwise" in text(registry, TEXT)
    assert actions(registry, newer) == {}


def test_an_upgrade_leaves_pinned_and_retired_resources_alone(registry: Registry) -> None:
    registry.pin(ADD, "as it is")
    registry.retire(parse_id("skill/counting"), "not wanted")
    release = {**SEED, PATH: FIXED, "skill/counting/SKILL.md": SEED["skill/counting/SKILL.md"] + b"More.\n"}
    assert actions(registry, release) == {"skill/counting": "kept", "tool/add-up": "conflict"}
    assert text(registry, PATH) == SEED[PATH]
    assert text(registry, "skill/counting/SKILL.md") == b""
    registry.unpin(ADD)
    assert actions(registry, release) == {"tool/add-up": "taken"}


def test_a_resource_of_ones_own_is_not_taken_for_a_shipped_one(registry: Registry) -> None:
    mine = {"memory/mine/memory.md": b"mine\n", "memory/mine/resource.toml": b'description = "Mine."\n'}
    registry.commit(mine, "Mine", "edit")
    theirs = {**mine, "memory/mine/memory.md": b"theirs\n"}
    assert actions(registry, {**SEED, **theirs}) == {"memory/mine": "conflict"}
    assert text(registry, "memory/mine/memory.md") == b"mine\n"


def test_a_broken_release_is_refused_as_a_whole(registry: Registry) -> None:
    before = registry.stable()
    with pytest.raises(Invalid):
        registry.upgrade({**SEED, PATH: b"def run(:\n", TEXT: b"New.\n"}, "2.0")
    assert registry.stable() == before


# --- pushes -----------------------------------------------------------------------------------


class Clone:
    """A person with plain git."""

    def __init__(self, registry: Registry, place: Path) -> None:
        self.place = place
        self.env = {"PATH": os.environ["PATH"], "HOME": str(place.parent), "GIT_CONFIG_NOSYSTEM": "1"}
        self.git("clone", "-q", str(registry.repository.path), str(place), cwd=place.parent)
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")

    def git(self, *arguments: str, cwd: Path | None = None, check: bool = True) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=cwd or self.place,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout + done.stderr

    def push(self, changes: dict[str, str | None], name: str = "mine") -> str:
        for path, content in changes.items():
            file = self.place / path
            if content is None:
                file.unlink()
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content)
        self.git("add", "--all", "--force")
        self.git("commit", "-q", "-m", "Better words\n\nBecause.")
        return self.git("push", "-q", "origin", f"HEAD:incoming/{name}")


@pytest.fixture
def clone(registry: Registry, tmp_path: Path) -> Clone:
    return Clone(registry, tmp_path / "clone")


def test_a_push_becomes_a_version_and_the_clone_can_pull_it(registry: Registry, clone: Clone) -> None:
    registry.commit({PATH: FIXED}, "Meanwhile", "edit")
    clone.push({TEXT: "Do it.\nCheck it.\nSay it better.\n"})
    (push,) = registry.take_in_pushes(None)
    assert (push.name, push.resources, push.faults) == ("mine", (PROMPT,), ())
    assert b"better" in text(registry, TEXT)
    assert text(registry, PATH) == FIXED
    newest = registry.versions(PROMPT)[0]
    assert (newest.number, newest.origin, newest.reason) == ("1.1.0", "edit", "Better words")
    assert len(registry.versions(ADD)) == 2
    clone.git("pull", "-q", "--ff-only")
    assert registry.take_in_pushes(None) == []
    assert [entry.author for entry in history.log(registry.repository, 1)] == ["Ada"]
    assert registry.check().faults == ()


def test_a_bad_push_is_refused_and_plain_git_shows_why(registry: Registry, clone: Clone) -> None:
    before = registry.stable()
    clone.push({PATH: "def run(:\n", "notes.txt": "mine"})
    (push,) = registry.take_in_pushes(None)
    assert push.faults == ("notes.txt lies outside a resource directory",)
    assert registry.stable() == before
    clone.git("fetch", "-q")
    assert "notes.txt lies outside" in clone.git("log", "-1", "origin/refused/mine")
    clone.push({"notes.txt": None})
    (push,) = registry.take_in_pushes(None)
    assert "not Python" in push.faults[0]
    clone.push({PATH: TOOL + "\n"})
    (push,) = registry.take_in_pushes(lambda files, tools: ([], ["it does not load"]))
    assert push.faults == ("tool/add-up: it does not load",)


@pytest.mark.parametrize("encoding", ["bogus", "idna", "latin-1"])
def test_a_push_in_any_encoding_is_taken_in(registry: Registry, clone: Clone, encoding: str) -> None:
    clone.git("config", "i18n.commitEncoding", encoding)
    clone.push({TEXT: "Do it.\nCheck it.\nSay it better.\n"})
    (push,) = registry.take_in_pushes(None)
    assert push.faults == ()
    assert registry.versions(PROMPT)[0].reason == "Better words"


def test_a_push_of_a_name_that_is_no_text_is_refused_with_it(registry: Registry, clone: Clone) -> None:
    clone.push({os.fsdecode(b"\xff.txt"): "mine"})
    (push,) = registry.take_in_pushes(None)
    assert push.faults
    clone.git("fetch", "-q")
    assert r"\udcff.txt lies outside" in clone.git("log", "-1", "origin/refused/mine")


def test_a_branch_whose_name_is_no_text_is_taken_in_also_where_git_packed_it(
    registry: Registry, clone: Clone
) -> None:
    clone.push({TEXT: "Do it.\nCheck it.\nSay it better.\n"}, os.fsdecode(b"\xff"))
    registry.repository.run("pack-refs", "--all")
    (push,) = registry.take_in_pushes(None)
    assert push.faults == ()
    assert registry.take_in_pushes(None) == []


@pytest.mark.parametrize("what", ["blob", "missing", "empty", "loop"])
def test_a_push_that_cannot_be_read_holds_up_no_other(registry: Registry, clone: Clone, what: str) -> None:
    clone.push({TEXT: "Do it.\nCheck it.\nSay it better.\n"})
    blob = registry.repository.git.create_blob(b"no commit")
    damaged = registry.repository.path / INCOMING / "a-first"
    content = {
        "blob": f"{blob}\n",
        "missing": f"{'1' * 40}\n",
        "loop": f"ref: {INCOMING}a-first\n",
        "empty": "",
    }
    damaged.write_text(content[what])
    (push,) = registry.take_in_pushes(None)
    assert (push.name, push.faults) == ("mine", ())
    with raises(Unavailable, names=["incoming/a-first"]):
        registry.take_in_pushes(None)


@pytest.mark.parametrize("names", [("fix", "fix/two"), ("fix/two", "fix")])
def test_a_refused_push_whose_name_lies_below_another_ones_holds_up_no_other(
    registry: Registry, names: tuple[str, str]
) -> None:
    repository, main = registry.repository, registry.stable().commit
    for name in names:
        with repository.lock():
            tree = repository.write_tree(repository.commit(main).tree_id, {"notes.txt": name.encode()})
            made = repository.write_commit(tree, [repository.commit(main).id], "Mine\n", registry.clock())
            repository.move(INCOMING + name, made, expected=None)
        (push,) = registry.take_in_pushes(None)
        assert push.faults
        assert list(repository.below(REFUSED)) == [name]
    assert repository.below(INCOMING) == {}


def test_a_push_that_conflicts_is_refused(registry: Registry, clone: Clone) -> None:
    registry.commit({TEXT: b"Do it here.\nCheck it.\nSay it.\n"}, "Meanwhile", "edit")
    clone.push({TEXT: "Do it there.\nCheck it.\nSay it.\n"})
    (push,) = registry.take_in_pushes(None)
    assert "changed differently on both sides" in push.faults[0]
    assert b"here" in text(registry, TEXT)


def test_a_push_of_a_link_or_a_foreign_history_is_refused(registry: Registry, clone: Clone) -> None:
    (clone.place / "tool/add-up/data").symlink_to("/etc/shadow")
    clone.push({})
    (push,) = registry.take_in_pushes(None)
    assert "symbolic link" in push.faults[0]
    clone.git("checkout", "-q", "--orphan", "other")
    clone.push({"tool/add-up/data": None}, "other")
    (push,) = registry.take_in_pushes(None)
    assert "no history in common" in push.faults[0]


def test_a_push_may_pin_but_not_reach_main_tags_or_candidates(registry: Registry, clone: Clone) -> None:
    before = registry.stable()
    for target in (
        "main",
        "refs/tags/tool/add-up@9.0.0",
        "refs/candidates/c-1",
        "last-good",
        "refs/agentos/shipped",
    ):
        clone.git("commit", "-q", "--allow-empty", "-m", "Sneak")
        answer = clone.git("push", "--force", "origin", f"HEAD:{target}", check=False)
        assert "hidden ref" in answer or "rejected" in answer
    assert "failed to push" in clone.git("push", "origin", "--delete", "main", check=False)
    assert registry.stable() == before
    clone.push({"registry.toml": '[pinned]\n"tool/add-up" = "pushed"\n'})
    (push,) = registry.take_in_pushes(None)
    assert push.faults == ()
    assert registry.pinned() == {"tool/add-up": "pushed"}


# --- history ----------------------------------------------------------------------------------


def test_log_and_diff(registry: Registry) -> None:
    first = registry.stable()
    registry.commit({PATH: FIXED}, "Swap", "edit", author="Ada <x>")
    registry.pin(PROMPT, "right")
    entries = history.log(registry.repository, 10)
    assert [entry.origin for entry in entries] == ["pin", "edit", "seed"]
    assert entries[1].versions == ("tool/add-up@1.1.0",)
    assert [entry.subject for entry in history.log(registry.repository, 10, "tool/add-up")] == [
        "Swap",
        "Seed the registry",
    ]
    shown = history.diff(registry.repository, first.commit, registry.stable().commit, "tool/add-up")
    assert "+    return Output(sum=input.b + input.a)" in shown
    with pytest.raises(Unavailable):
        history.diff(registry.repository, "no-such", "main")


def test_nothing_that_the_repository_or_the_environment_names_is_run(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "trap"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {trap}\ncat 2>/dev/null\n")
    program.chmod(0o755)
    path = registry.repository.path
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in (
        "pre-commit",
        "post-commit",
        "reference-transaction",
        "post-update",
        "pre-receive",
        "pre-auto-gc",
    ):
        for folder in (hooks, path / "hooks"):
            folder.mkdir(exist_ok=True)
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(program)
    with (path / "config").open("a") as config:
        config.write(
            f"[core]\n\thooksPath = {hooks}\n\tfsmonitor = {program}\n\tpager = {program}\n\teditor = {program}\n"
            f'[diff]\n\texternal = {program}\n[diff "x"]\n\ttextconv = {program}\n\tcommand = {program}\n'
            f"[gpg]\n\tprogram = {program}\n[log]\n\tshowSignature = true\n[gc]\n\tauto = 1\n"
            f'[filter "x"]\n\tclean = {program}\n\tsmudge = {program}\n'
        )
    (path / "info").mkdir(exist_ok=True)
    (path / "info" / "attributes").write_text("* diff=x filter=x\n")
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH_COMMAND", "GIT_EDITOR"):
        monkeypatch.setenv(name, str(program))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "objects"))
    again = Registry(path)
    before = again.stable()
    after = again.commit({PATH: FIXED}, "Edit", "edit")
    report = again.check()
    assert "+    return Output" in history.diff(again.repository, before.commit, after.commit)
    assert history.log(again.repository, 5)
    assert again.maintain(loose=0)
    assert again.stable() == after
    assert report.faults == ()
    assert any("core.fsmonitor" in warning for warning in report.warnings)
    assert not trap.exists()


# --- damage -----------------------------------------------------------------------------------


def test_a_whole_registry_has_no_faults(registry: Registry) -> None:
    registry.commit({PATH: FIXED}, "Edit", "edit")
    report = registry.check()
    assert report.faults == report.warnings == ()
    assert (report.resources, report.repaired) == (6, 0)


def test_a_corrupt_object_is_named_and_the_rest_goes_on(loose: Registry) -> None:
    now = loose.stable()
    blob = loose.repository.entry(now.tree, PATH)
    assert blob is not None
    file = loose.repository.path / "objects" / str(blob.id)[:2] / str(blob.id)[2:]
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-9] + b"corrupted")
    again = Registry(loose.repository.path)
    with raises(Unavailable, ErrorKind.DAMAGED, names=[str(blob.id)]):
        again.files(now, "tool/add-up")
    assert again.files(now, "prompt/default")
    report = again.check()
    assert any("tool/add-up" in fault and str(blob.id) in fault for fault in report.faults)
    assert not any("prompt/default" in fault for fault in report.faults)
    again.commit({TEXT: b"Still works.\n"}, "Edit", "edit")
    again.commit({PATH: FIXED}, "Replace the broken file", "edit")
    assert text(again, PATH) == FIXED
    assert again.why_fixed(ADD) is None


def test_missing_tags_are_written_again_as_they_were(registry: Registry) -> None:
    registry.commit({PATH: FIXED}, "Edit", "edit")
    versions = registry.versions(ADD)
    repository = registry.repository
    for ref in (
        "refs/tags/tool/add-up@1.0.0",
        "refs/tags/tool/add-up@1.1.0",
        "refs/agentos/latest/tool/add-up",
    ):
        repository.drop(ref)
    report = registry.check()
    assert (report.faults, report.repaired) == ((), 2)
    assert registry.versions(ADD) == versions


def test_the_next_write_completes_a_write_that_was_killed_before_its_tags(registry: Registry) -> None:
    registry.commit({PATH: FIXED}, "Edit", "edit")
    repository = registry.repository
    repository.drop("refs/tags/tool/add-up@1.1.0")
    repository.drop("refs/agentos/latest/tool/add-up")
    repository.move(
        "refs/agentos/latest/tool/add-up", repository.resolve("refs/tags/tool/add-up@1.0.0"), expected=None
    )
    registry.commit({PATH: TOOL.encode() + b"\n"}, "Again", "edit")
    assert [version.number for version in registry.versions(ADD)] == ["1.2.0", "1.1.0", "1.0.0"]


def test_lock_files_of_the_dead_do_not_block(registry: Registry) -> None:
    path = registry.repository.path
    for name in (
        "refs/heads/main",
        "refs/agentos/latest/tool/add-up",
        "refs/tags/tool/add-up@1.1.0",
        "packed-refs",
    ):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / f"{name}.lock").touch()
    registry.commit({PATH: FIXED}, "Edit", "edit")
    assert text(registry, PATH) == FIXED
    stale = path / "refs/heads/other.lock"
    stale.touch()
    assert leftovers(registry.repository) == []
    assert sweep(registry.repository, time.time() + 7_200) == [stale]
    assert not stale.exists()


def test_what_was_changed_behind_our_back_is_named(registry: Registry) -> None:
    repository = registry.repository
    now = registry.stable()
    tree = repository.write_tree(now.tree, {PATH: FIXED})
    made = repository.write_commit(tree, [repository.commit(now.commit).id], "Sneak\n", registry.clock())
    repository.move("refs/heads/main", made, expected=repository.commit(now.commit).id)
    faults = registry.check().faults
    assert any("was not made by this program" in fault for fault in faults)
    assert any("tool/add-up: its content is not that of its newest version" in fault for fault in faults)


def test_maintenance_keeps_everything_readable(registry: Registry) -> None:
    registry.commit({PATH: FIXED}, "Edit", "edit")
    registry.add_candidate("c-1", registry.stable(), {PATH: TOOL})
    assert not registry.maintain()
    assert registry.maintain(loose=0)
    assert [version.number for version in registry.versions(ADD)] == ["1.1.0", "1.0.0"]
    registry.commit({PATH: TOOL.encode()}, "Back", "edit")
    assert registry.check().faults == ()
    assert registry.repository.below("refs/candidates/").keys() == {"c-1"}


@pytest.mark.slow
def test_what_nothing_names_is_packed_once_and_not_counted_again(registry: Registry) -> None:
    kept = registry.repository.git.create_blob(b"nobody's")
    for number in range(1_500):  # every 256th lies in the folder that is looked at
        registry.repository.git.create_blob(f"left {number}".encode())
    assert registry.maintain(loose=500)
    assert not registry.maintain(loose=500)
    assert registry.repository.run("cat-file", "blob", str(kept)).stdout == "nobody's"


def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        registry = Registry.init(place / "registry.git", SEED)
        full, written = lacking(OSError(errno.ENOSPC, "")), 0
        with raises(Unavailable, ErrorKind.FULL, names=[full]):
            while written < 300:
                noise = f"# {os.urandom(6_000).hex()}\n"
                registry.commit({PATH: (TOOL + noise).encode()}, "Edit", "edit")
                written += 1
        ships = {PATH: (TOOL + f"# {os.urandom(60_000).hex()}\n").encode()}
        with raises(Unavailable, ErrorKind.FULL, names=[full]):  # libgit2 said "object not found"
            registry.upgrade(ships, "9")
        assert 0 < written < 300
        subprocess.run(["mount", "-o", "remount,size=8m", str(place)], check=True)
        assert registry.check().faults == ()
        assert len(registry.versions(ADD)) == written + 1
        registry.commit({PATH: FIXED}, "Room again", "edit")
    finally:
        subprocess.run(["umount", str(place)], check=True)


def tree_of(registry: Registry, *entries: tuple[str, str, pygit2.Oid]) -> pygit2.Oid:
    """A tree as it is given, which no check of ours has seen."""
    raw = b"".join(f"{mode} {name}".encode() + b"\0" + made.raw for mode, name, made in entries)
    return registry.repository.git.odb.write(ObjectType.TREE, raw)


def offer(registry: Registry, changes: dict[str, pygit2.Oid | bytes | None]) -> Push:
    repository, main = registry.repository, registry.stable()
    with repository.lock():
        tree = repository.write_tree(main.tree, changes)
        made = repository.write_commit(tree, [repository.commit(main.commit).id], "Mine\n", registry.clock())
        repository.move(INCOMING + "mine", made, expected=None)
    (push,) = registry.take_in_pushes(None)
    return push


def test_a_push_of_too_much_is_refused_before_it_is_read(registry: Registry) -> None:
    """A tree that holds itself ten times over, a few levels deep, has as many files as a disk has atoms."""
    file = registry.repository.git.create_blob(b"x")
    bomb = tree_of(registry, ("100644", "a", file))
    for _ in range(20):
        bomb = tree_of(registry, *(("40000", f"d{number}", bomb) for number in range(10)))
    wide = tree_of(registry, *(("100644", f"f{number:03}", file) for number in range(501)))
    for tree in (bomb, wide):
        push = offer(registry, {"prompt/default/more": tree})
        assert push.faults
        assert len(push.faults) <= FILES_MAX + 1
    large = b"#" * (FILE_MAX + 1)
    for path in ("prompt/default/more.md", PINS_FILE):
        assert offer(registry, {path: large}).faults
