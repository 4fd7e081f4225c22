"""``agentos skill …`` as a person types it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agentos.cli.resources import skill
from agentos.errors import ErrorKind, UserError
from agentos.home import Home
from agentos.registry.git import NO_GIT
from agentos.registry.skill_folders.skill_source import checkout
from agentos.registry.skill_folders.skills_folder import SkillsFolders
from agentos.registry.store import Registry
from agentos.resources.documents import FILE_MAX
from tests.refusals import assert_golden, raises

Ran = subprocess.CompletedProcess[str]
SKILL = "---\nname: {name}\ndescription: Rolls: dice.\nallowed-tools: Bash(python:*)\n---\n\n# Dice\n"

TOOL = """'''Rolls.'''

import nonesuch
from pydantic import BaseModel

TOOL = {"name": "roll", "description": "Roll dice", "effects": ["pure"]}


class Input(BaseModel):
    pass


class Output(BaseModel):
    pass


def run(input: Input) -> Output:
    return Output()
"""


def drop(place: Path, name: str = "dice") -> Path:
    folder = place / name
    for path, text in {
        "SKILL.md": SKILL.format(name=name),
        "scripts/roll.py": "# /// script\n# dependencies = ['nothing @ https://example.org/x']\n# ///\nprint(4)\n",
        "tests/test_roll.sh": "python3 scripts/roll.py\n",
        "tests/test_more.py": "def test_x(): pass\n",
        "examples/roll.yaml": "goal: roll\ncall: {tool: dice/scripts/roll.py, args: {}}\n",
        "notes.txt~": "old",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def take_in(home: Home) -> None:
    folders = SkillsFolders(Registry(home.registry), [home.skills], None)
    for now in (0.0, 1.0):
        folders.scan(now)


def test_a_machine_without_git_is_told_what_to_type(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError) as told, checkout("https://example.org/x.git"):
        pass
    assert str(told.value) == NO_GIT


def test_what_git_started_for_a_silent_server_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentos.registry.skill_folders.skill_source._TIMEOUT_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as door:
        url = f"http://127.0.0.1:{door.getsockname()[1]}/x.git"
        with raises(UserError, ErrorKind.TIMEOUT), checkout(url):
            pass

        def helpers() -> list[str]:
            found = []
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):  # it has ended
                    found += [path.parent.name] if url.encode() in path.read_bytes() else []
            return found

        until = time.monotonic() + 30
        while helpers() and time.monotonic() < until:
            time.sleep(0.05)
        assert helpers() == []


def test_no_text_names_no_folder() -> None:
    with pytest.raises(UserError), checkout(""):
        pass


@pytest.mark.slow
def test_a_folder_is_added_listed_and_shown(agentos: Callable[..., Ran], home: Home, tmp_path: Path) -> None:
    source = drop(tmp_path / "elsewhere")
    (added,) = json.loads(agentos("skill", "add", str(source), "--json").stdout)
    assert added["skill"] == "dice"
    assert "is not YAML" in added["warnings"][0]
    assert not (home.skills / "dice" / "notes.txt~").exists()
    assert_golden("skill_add.there_already", agentos("skill", "add", str(source), code=1).stderr)
    agentos("skill", "add", str(source), "--name", "Cubes")
    (home.skills / "empty").mkdir()
    take_in(home)
    shutil.rmtree(home.skills / "dice")  # as when it came from a folder that was adopted
    assert_golden("skill_add.registry_edit_skill_dice", agentos("skill", "add", str(source), code=1).stderr)
    listed = json.loads(agentos("skill", "list", "--json").stdout)["skills"]
    assert {"cubes", "dice"} <= {row["skill"] for row in listed}
    assert [row["description"] for row in listed if row["skill"] == "dice"] == ["Rolls: dice."]
    assert "Rolls: dice." in agentos("skill", "list").stdout
    shown = json.loads(agentos("skill", "show", "dice", "--json").stdout)
    assert shown["scripts"] == ["scripts/roll.py", "tests/test_more.py", "tests/test_roll.sh"]
    assert shown["tests"] == ["examples/roll.yaml", "tests/test_roll.sh"]
    assert (shown["allowed_tools"], shown["locked"]) == (["Bash(python:*)"], [])
    assert any("run without nothing" in warning for warning in shown["warnings"])
    assert "is not YAML" in agentos("skill", "show", "dice").stdout
    assert_golden("skill_show.try_agentos_skill_list", agentos("skill", "show", "nonesuch", code=1).stderr)


@pytest.mark.slow
def test_a_repository_with_several_skills_is_asked_for_one(
    agentos: Callable[..., Ran], home: Home, tmp_path: Path
) -> None:
    place = tmp_path / "team"
    drop(place / "skills", "dice")
    drop(place / "skills", "cards")
    (place / "skills" / "cards" / "link").symlink_to("/etc/hostname")
    hook = place / "hook.sh"
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *command], cwd=place, check=True)
    url = f"file://{place}"
    assert_golden("skill_add.cards_dice", agentos("skill", "add", url, code=1).stderr)
    assert_golden(
        "skill_add.no_skill_nonesuch", agentos("skill", "add", url, "--only", "nonesuch", code=1).stderr
    )
    assert_golden(
        "skill_add.one_of_the_two", agentos("skill", "add", url, "--only", "dice", "--all", code=1).stderr
    )
    agentos("skill", "add", url, "--only", "dice")
    assert sorted(path.name for path in home.skills.iterdir() if path.is_dir()) == ["dice"]
    assert_golden("skill_add.symbolic_link", agentos("skill", "add", url, "--only", "cards", code=1).stderr)
    assert [path.name for path in home.skills.iterdir() if path.is_dir()] == ["dice"]
    assert not hook.exists()


def test_folders_that_would_be_one_skill_are_told_and_none_is_left_out(
    agentos: Callable[..., Ran], home: Home, tmp_path: Path
) -> None:
    drop(tmp_path / "a")
    drop(tmp_path / "b")
    said = agentos("skill", "add", str(tmp_path), "--all", code=1).stderr
    assert "a/dice, b/dice" in said
    assert "--name" in said
    agentos("skill", "add", str(tmp_path / "a" / "dice"))
    agentos("skill", "add", str(tmp_path / "b" / "dice"), "--name", "more-dice")
    assert sorted(path.name for path in home.skills.iterdir() if path.is_dir()) == ["dice", "more-dice"]


def test_a_folder_that_no_skill_can_be_called_by_needs_a_name(
    agentos: Callable[..., Ran], home: Home, tmp_path: Path
) -> None:
    place = drop(tmp_path).rename(tmp_path / "日本語")
    assert_golden("skill_add.name", agentos("skill", "add", str(place), code=1).stderr)
    agentos("skill", "add", str(place), "--name", "dice")
    assert (home.skills / "dice").is_dir()


def test_a_skill_that_lies_too_deep_is_told_where_to_look(
    agentos: Callable[..., Ran], tmp_path: Path
) -> None:
    drop(tmp_path / "1/2/3/4/5")
    assert_golden("skill_add.deeper", agentos("skill", "add", str(tmp_path), code=1).stderr)


@pytest.mark.parametrize(
    "source", ["git@example.org:me/dice.git", "git@example.org:dice", "https://example.org/me/dice.git/#main"]
)
def test_a_skill_at_the_top_of_a_checkout_is_called_as_its_repository(source: str, tmp_path: Path) -> None:
    assert skill._called(tmp_path, tmp_path, source) == "dice"


@pytest.mark.parametrize("source", ["/nowhere/at/all", "file:///nowhere/at/all", "--upload-pack=x"])
def test_what_is_not_there_is_said(agentos: Callable[..., Ran], source: str) -> None:
    done = agentos("skill", "add", "--", source, code=1)
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


def test_a_skill_without_tests_says_what_a_test_is(agentos: Callable[..., Ran]) -> None:
    assert_golden("skill_test.tests", agentos("skill", "test", "text-stats", code=1).stderr)


@pytest.mark.parametrize("name", ["", "text-stats/tools"])
def test_a_name_that_is_none_of_a_skill_is_not_found(agentos: Callable[..., Ran], name: str) -> None:
    assert "There is no skill/" in agentos("skill", "show", name, code=1).stderr
    assert "There is no skill/" in agentos("skill", "test", name, code=1).stderr


@pytest.mark.sandbox
@pytest.mark.slow
def test_what_a_skill_ships_is_run_and_one_that_fails_is_named(
    agentos: Callable[..., Ran], home: Home, tmp_path: Path
) -> None:
    folder = drop(tmp_path / "elsewhere")
    (folder / "scripts" / "roll.py").write_text("print(4)\n")
    agentos("skill", "add", str(folder))
    take_in(home)
    agentos("daemon", "start")
    try:
        passed = agentos("skill", "test", "dice").stdout
        assert "2 of 2 passed" in passed
        (folder / "tests" / "test_roll.sh").write_text("python3 scripts/roll.py | grep -q 7\n")
        agentos("skill", "add", str(folder), "--name", "loaded")
        failed = agentos("skill", "test", "loaded", code=1).stdout
        assert "tests/test_roll.sh" in failed
        assert "0 of 2 passed" in failed or "1 of 2 passed" in failed
        (folder / "tools").mkdir()
        (folder / "tools" / "roll.py").write_text(TOOL)
        refused = agentos("skill", "add", str(folder), "--name", "broken", code=1)
        assert str(home.skills / "broken") in refused.stderr
        (folder / "tools" / "roll.py").write_text(TOOL.replace("import nonesuch\n", ""))
        shutil.rmtree(home.skills / "broken")
        agentos(
            "skill", "add", str(folder), "--name", "broken"
        )  # at once: what was said is of what was there before
    finally:
        agentos("daemon", "stop")


@pytest.mark.slow
def test_what_was_assumed_of_a_skill_is_nothing_that_is_wrong(agentos: Any, home: Home) -> None:
    page = b"No front matter, as it is found on the net.\n"
    Registry(home.registry).commit({"skill/found/SKILL.md": page}, "A skill from elsewhere", "edit")
    report = Registry(home.registry).check()
    assert (report.faults, report.warnings) == ((), ())
    assert [line for line in report.assumed if "skill/found" in line]
    assert "skill/found" in agentos("registry", "check").stdout
    assert json.loads(agentos("doctor", "--full", "--json").stdout)["findings"] == []


def test_a_page_that_is_too_large_is_called_so(agentos: Any, tmp_path: Path) -> None:
    (tmp_path / "big").mkdir()
    (tmp_path / "big" / "SKILL.md").write_bytes(b"x" * (FILE_MAX + 1))
    assert str(FILE_MAX + 1) in agentos("skill", "add", str(tmp_path / "big"), code=1).stderr
