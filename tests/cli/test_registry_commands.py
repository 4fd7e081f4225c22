"""``agentos registry`` as a person types it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentos import shipped
from agentos.cli.resources.registry import app
from agentos.daemon.evolve.serving_pointer import HeldBack
from agentos.daemon.offline import offline_context
from agentos.daemon.upkeep.status import HELD
from agentos.daemon.views import evolution_view
from agentos.domain import Evolution, EvolutionEnding
from agentos.errors import Conflict, ErrorKind, Invalid, NotFound, Unavailable, UserError
from agentos.evolver.watch.live_regression import follow
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.registry.upgrade import outdated
from agentos.resources import parse_id
from tests.refusals import raises

MEMORY = parse_id("memory/default")
TEXT = "memory/default/memory.md"


@pytest.fixture
def registry(first_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """Of a home that has nothing else."""
    monkeypatch.setenv("AGENTOS_HOME", str(tmp_path / "home"))
    shutil.copytree(Home(first_home).registry, tmp_path / "home" / "registry.git")
    return Registry(tmp_path / "home" / "registry.git")


def call(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


def call_json(*arguments: str, code: int = 0) -> Any:
    return json.loads(call(*arguments, "--json", code=code))


def test_list_and_show(registry: Registry) -> None:
    assert "memory/default" in call("list")
    rows = call_json("list", "--kind", "memory")
    assert [(row["resource"], row["version"], row["origin"], row["pinned"]) for row in rows] == [
        ("memory/default", "1.0.0", "seed", None)
    ]
    assert "# Lessons" in call("show", "memory/default")
    shown = call_json("show", "memory/default@1.0.0")
    assert (shown["version"]["number"], shown["may_evolve"], shown["faults"]) == ("1.0.0", True, [])
    assert shown["files"][TEXT] == "# Lessons\n"
    with raises(NotFound, type_next="agentos registry list"):
        call("show", "memory/nothing")
    with raises(NotFound, names=["memory/default@9.9.9"]):
        call("show", "memory/default@9.9.9")
    with raises(NotFound, names=["memory/default@main"]):
        call("show", "memory/default@main")


def test_edit_from_a_file_log_diff_and_revert(registry: Registry, tmp_path: Path) -> None:
    new = tmp_path / "new.md"
    new.write_text("# Lessons\n- Count twice.\n")
    assert "memory/default is now 1.1.0: It was wrong" in call(
        "edit", "memory/default", "--file", str(new), "--reason", "It was wrong"
    )
    assert "Nothing was changed" in call("edit", "memory/default", "--file", str(new))
    assert [row["number"] for row in call_json("log", "memory/default")] == ["1.1.0", "1.0.0"]
    assert [row["origin"] for row in call_json("log")] == ["edit", "seed"]
    assert "It was wrong" in call("log")
    assert "+- Count twice." in call("diff", "memory/default")
    assert "+# Lessons" in call("diff", "memory/default@1.0.0")
    assert "No difference" in call("diff", "memory/default", "--from", "1.1.0")
    assert "+- Count twice." in call_json("diff", "memory/default")["diff"]
    with raises(UserError, ErrorKind.USAGE, names=["--yes"]):
        call("revert", "memory/default")
    out = call("revert", "memory/default", "--yes", "--reason", "It was right")
    assert "-- Count twice." in out
    assert "memory/default is now 1.1.1: Revert memory/default@1.1.0: It was right" in out
    with raises(Conflict, ErrorKind.LATER, names=["1.1.1"]):
        call("revert", "memory/default@1.1.0", "--yes")
    assert "is now 1.1.2" in call("revert", "memory/default", "--to", "1.1.0", "--yes")
    assert "nothing was changed" in call("revert", "memory/default", "--to", "1.1.0", "--yes")
    with raises(UserError, ErrorKind.USAGE, names=["--to 1.0.0"]):
        call("revert", "memory/default@1.1.0", "--to", "1.0.0")


def test_an_edit_says_what_it_does_not_know_and_refuses_what_nobody_can_read(
    registry: Registry, tmp_path: Path
) -> None:
    file = tmp_path / "new"
    file.write_text('description = "x"\nnet = "yes"\n')
    assert "unknown key 'net'" in call("edit", "environment/default", "--file", str(file))
    file.write_bytes(b"# Lessons\n\xff\xfe")
    with raises(Invalid, message="change.memory_not_text"):
        call("edit", "memory/default", "--file", str(file))
    with raises(Invalid, message="change.prompt_not_text"):
        call("edit", "prompt/default/prompt.md", "--file", str(file))
    file.write_text("description = \n")
    with pytest.raises(Invalid, match="is not TOML") as refused:
        call("edit", "agent/default", "--file", str(file))
    assert "must be a text" not in str(refused.value), "one fault is told once"
    file.write_bytes(b'description = "\xff"')
    with raises(Invalid, message="change.document_not_text") as refused:
        call("edit", "agent/default", "--file", str(file))
    assert "must be a text" not in str(refused.value)
    assert registry.files(registry.stable(), TEXT)[TEXT] == b"# Lessons\n"


def test_what_was_typed_in_an_editor_is_kept_where_it_is_refused(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} -c \"import sys; open(sys.argv[1], 'w').write('half')\"")
    with pytest.raises(Invalid):
        call("edit", "agent/default", "--yes")
    (kept,) = tmp_path.glob("agentos-edit-*/*")
    assert kept.read_text() == "half"


def test_edit_in_an_editor_and_of_a_folder(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    with raises(UserError, ErrorKind.NOT_INSTALLED, names=["$EDITOR"]):
        call("edit", "memory/default")
    for unreadable in ("it's", " "):
        monkeypatch.setenv("EDITOR", unreadable)
        with raises(UserError, ErrorKind.NOT_INSTALLED, names=["$EDITOR"]):
            call("edit", "memory/default")
    monkeypatch.setenv(
        "EDITOR", f"{sys.executable} -c \"import sys; open(sys.argv[1], 'a').write('- More.')\""
    )
    assert "1.1.0" in call("edit", "memory/default", "--yes")
    assert registry.files(registry.stable(), TEXT)[TEXT] == b"# Lessons\n- More."
    monkeypatch.setenv("EDITOR", "false")
    with raises(UserError, message="edit.editor_failed"):
        call("edit", "memory/default", "--yes")
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "memory.md").write_text("mine\n")
    with raises(Invalid, message="change.no_document"):
        call("edit", "memory/mine", "--file", str(folder))
    (folder / "resource.toml").write_text('description = "Mine."\n')
    assert "memory/mine is now 1.0.0" in call("edit", "memory/mine", "--file", str(folder))
    (folder / "link").symlink_to("/etc/passwd")
    with raises(Invalid, message="edit.symbolic_link", hidden={"folder": folder}):
        call("edit", "memory/mine", "--file", str(folder))
    with raises(Invalid, message="edit.file_name"):
        call("edit", "memory/default/../../registry.toml", "--file", str(folder / "memory.md"))


def test_a_revert_that_would_remove_a_resource_says_so(registry: Registry, tmp_path: Path) -> None:
    new = tmp_path / "mine"
    new.mkdir()
    (new / "memory.md").write_text("# Mine\n")
    (new / "resource.toml").write_text('description = "Mine."\n')
    call("edit", "memory/mine", "--file", str(new))
    for target in ("memory/mine", "memory/mine@1.0.0"):
        with raises(UserError, type_next="agentos registry retire memory/mine"):
            call("revert", target, "--yes")
    with raises(UserError, type_next="agentos registry revert memory/mine --to 1.0.0"):
        call("revert", "memory/mine@1.0.0", "--yes")
    assert registry.latest(parse_id("memory/mine")).number == "1.0.0"  # type: ignore[union-attr]
    assert "is retired" in call("retire", "memory/mine", "--yes")
    with raises(UserError, ErrorKind.DECIDED):
        call("retire", "memory/mine", "--yes")
    with pytest.raises(NotFound):
        call("retire", "memory/nowhere", "--yes")
    assert "memory/mine is now" in call("revert", "memory/mine", "--yes")


def test_revert_of_an_evolution(registry: Registry) -> None:
    base = registry.stable()
    candidate = registry.add_candidate("cand-1", base, {TEXT: "# Lessons\n- Wrong.\n"})
    registry.promote(base, candidate, {"Evolution": "evo-1"}, "Learn")
    assert "+- Wrong." in call("diff", "evo-1")
    assert "memory/default is now 1.0.2: Revert evolution evo-1: bad" in call(
        "revert", "evo-1", "--yes", "--reason", "bad"
    )
    assert registry.stable().tree == base.tree
    assert "nothing was changed" in call("revert", "evo-1", "--yes")


def test_that_a_change_is_not_in_force_yet_is_said(registry: Registry, tmp_path: Path) -> None:
    held = HeldBack(registry.stable().commit, "4389dd0f8e56", "it is being probed", failed=False)
    with closing(Ledger(Home.find().ledger)) as ledger:
        ledger.set_kv(HELD, asdict(held))
    new = tmp_path / "new.md"
    new.write_text("# Lessons\n- Count twice.\n")
    said = call("edit", "memory/default", "--file", str(new), "--yes")
    assert "new runs get 4389dd0f8e56" in said
    with closing(Ledger(Home.find().ledger)) as ledger:
        ledger.set_kv(HELD, None)
    assert "new runs get" not in call("revert", "memory/default", "--yes")


def test_an_evolution_is_named_by_enough_of_its_id(registry: Registry) -> None:
    for name in ("evo-m87a", "evo-m87b"):
        base = registry.stable()
        candidate = registry.add_candidate(f"cand-{name}", base, {TEXT: f"# Lessons\n- By {name}.\n"})
        registry.promote(base, candidate, {"Evolution": name}, "Learn")
    for part in ("evo-m87b", "m87b", "7b"):
        assert "+- By evo-m87b." in call("diff", part)
    for ambiguous in ("evo-m87", "m8"):
        with raises(UserError, ErrorKind.AMBIGUOUS, names=["evo-m87a, evo-m87b"]):
            call("diff", ambiguous)
    with pytest.raises(NotFound):
        call("diff", "m88")
    call("revert", "m87b", "--yes")
    assert "By evo-m87a" in call("show", "memory/default")
    with raises(NotFound, names=["evo-2"]):
        call("revert", "evo-2", "--yes")


def test_pin_unpin_check_upgrade_and_mending(registry: Registry, tmp_path: Path) -> None:
    shutil.rmtree(registry.repository.path)  # for one with a file for each object
    registry = Registry.init(registry.repository.path, shipped.seed_files())
    call("pin", "memory/default", "--reason", "right as it is")
    assert call_json("list", "--kind", "memory")[0]["pinned"] == "right as it is"
    assert "pinned: right as it is" in call_json("show", "memory/default")["why_not"]
    for verb in ("pin", "unpin", "retire", "log"):  # of a resource, not of one of its versions
        with raises(UserError, message="name.with_version"):
            call(verb, "memory/default@1.0.0")
    with raises(UserError, ErrorKind.USAGE, names=["memory/default"]):
        call("upgrade", "--keep", "memory/default", "--take", "memory/default")
    with raises(UserError, ErrorKind.USAGE, names=["--from"]):
        call("diff", "evo-1", "--from", "1.0.0")
    call("unpin", "memory/default")
    assert call_json("list", "--kind", "memory")[0]["pinned"] is None
    assert "Nothing that ships has changed" in call("upgrade")
    assert "The registry is whole" in call("check")
    entry = registry.repository.entry(registry.stable().tree, TEXT)
    assert entry is not None
    (registry.repository.path / "objects" / str(entry.id)[:2] / str(entry.id)[2:]).unlink()
    report = call_json("check", code=1)
    assert any(str(entry.id) in fault for fault in report["faults"])
    with raises(Unavailable, ErrorKind.DAMAGED, names=[str(entry.id)]):
        call("show", "memory/default")
    new = tmp_path / "new.md"
    new.write_text("# New\n")
    assert "No diff can be shown" in call("edit", "memory/default", "--file", str(new))
    assert "# New" in call("show", "memory/default")


@pytest.mark.parametrize(
    "words",
    [
        ("show",),
        ("log",),
        ("diff",),
        ("revert",),
        ("retire",),
        ("pin",),
        ("unpin",),
        ("wheels",),
        ("upgrade", "--keep"),
    ],
)
def test_a_name_that_nothing_has_is_answered_by_the_near_ones(
    registry: Registry, words: tuple[str, ...]
) -> None:
    with raises(NotFound, names=["tool/word-count?"]):
        call(*words, "tool/wordcount")
    with pytest.raises(NotFound) as caught:
        call(*words, "tool/xyz")
    assert "Did you mean" not in str(caught.value)
    with raises(UserError, message="name.near_kind"):
        call(*words, "skil/csv-report")


def test_a_pin_that_ends_a_watch_says_so_and_so_does_the_unpin(
    evolved_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "evolved")
    monkeypatch.setenv("AGENTOS_HOME", str(home.root))
    shutil.copytree(evolved_home, home.root)
    (ended,) = Reader(home.ledger).find(Evolution)
    assert ended.id not in call("pin", "tool/word-count"), "nothing is watched there"
    assert ended.id in call("pin", "skill/calc")
    with offline_context(home) as parts:
        (followed,) = follow(parts)
    assert (followed.id, followed.ending) == (ended.id, EvolutionEnding.PINNED)
    assert ended.id not in call("pin", "skill/calc"), "it ended before"
    assert ended.id in call("unpin", "skill/calc")
    assert ended.id not in call("unpin", "skill/calc"), "it was not pinned any more"


def test_an_upgrade_with_a_conflict_ends_with_1_and_says_how_to_settle_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTOS_HOME", str(tmp_path / "home"))
    older = {**shipped.seed_files(), TEXT: b"# Older\n"}
    registry = Registry.init(tmp_path / "home" / "registry.git", older)
    registry.commit({TEXT: b"# Mine\n"}, "Mine", "edit")
    assert "--keep memory/default" in call("upgrade", code=1)
    assert call_json("upgrade", code=1)["items"][0]["action"] == "conflict"
    assert "kept" in call("upgrade", "--keep", "memory/default")
    assert "Nothing that ships has changed" in call("upgrade")


@pytest.mark.slow
def test_reading_commands_import_nothing_heavy(registry: Registry) -> None:
    code = (
        "import sys\nfrom agentos.cli.resources.registry import app\n"
        "app(sys.argv[1:], standalone_mode=False)\n"
        "heavy = {'sqlmodel', 'sqlalchemy', 'dbos', 'langgraph', 'pydantic_settings', 'alembic', 'agentos.messages'}\n"
        "print('\\nheavy:', sorted(heavy & set(sys.modules)))\n"
    )
    for command in (["diff", "memory/default"], ["log"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *command],
            env=dict(os.environ),
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
        )
        assert done.stdout.endswith("heavy: []\n"), command


def test_a_release_that_ships_something_else_says_so(
    registry: Registry,
) -> None:
    files = shipped.seed_files()
    path = next(path for path in files if path.startswith("agent/default/"))
    registry.upgrade(files, "0")
    assert outdated(registry.repository, files) == []
    before = registry.stable()
    changed = files | {path: files[path] + b"\n# newer\n"}
    assert outdated(registry.repository, changed) == ["agent/default"]
    assert registry.stable() == before
    registry.upgrade(changed, "1")
    assert outdated(registry.repository, changed) == []


def test_the_kept_list_is_that_of_the_registry_whatever_became_of_either(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home.find()
    home.run.mkdir()
    index = home.run / "resources.json"
    plain = call_json("list")
    monkeypatch.setattr(evolution_view, "_MANY", 1)

    def kept() -> Any:
        """The list, made with an index and once more by it; without one it is the same."""
        first, again = call_json("list"), call_json("list")
        with monkeypatch.context() as patch:
            patch.setattr(evolution_view, "_MANY", 1_000_000)
            assert first == again == call_json("list")
        return again

    assert kept() == plain
    assert call_json("list", "--kind", "memory") == [
        row for row in plain if row["resource"] == "memory/default"
    ]
    made = index.read_bytes()
    with monkeypatch.context() as patch:  # what is kept is gone by
        patch.setattr(Registry, "latest", None)
        assert call_json("list") == plain
    registry.commit({TEXT: b"# Other\n"}, "Another", "edit")
    (row,) = [row for row in kept() if row["resource"] == "memory/default"]
    assert (row["version"], row["reason"]) == ("1.1.0", "Another")
    index.write_bytes(made)  # of a backup, older than the registry
    call("revert", "memory/default", "--yes", "--reason", "Back")
    (row,) = [row for row in kept() if row["resource"] == "memory/default"]
    back = row["version"], row["reason"]
    assert row["origin"] == "revert", "its content is what it was, its version is not"
    tag = f"refs/agentos/latest/{MEMORY}"
    registry.repository.run("update-ref", "-d", tag)  # a kill between a commit and its tags
    index.unlink()
    (row,) = [row for row in kept() if row["resource"] == "memory/default"]
    assert row["version"] is None
    call("check")  # writes it again
    (row,) = [row for row in kept() if row["resource"] == "memory/default"]
    assert (row["version"], row["reason"]) == back


@pytest.mark.parametrize(
    "garbage",
    [b"", b"{", b"[]", b"[1, 2, 3]", b'["x", {}, []]', b"\xff", b'["x", {"a": 1}, {"b": 2}]', b"null"],
)
def test_a_kept_list_that_is_none_is_made_anew(
    registry: Registry, garbage: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = call_json("list")
    monkeypatch.setattr(evolution_view, "_MANY", 1)
    index = Home.find().run / "resources.json"
    index.parent.mkdir()
    index.write_bytes(garbage)
    assert call_json("list") == plain
    commit = registry.stable().commit
    index.write_text(json.dumps([commit, {"memory/default": []}, {}]))
    assert call_json("list") == plain
    index.write_text(json.dumps([commit, {"memory/default": ["0" * 40, "9.9.9", "edit", 0, "made up"]}, {}]))
    assert call_json("list") == plain, "it is not of this tree"
    index.unlink()
    index.mkdir()  # it cannot be written
    assert call_json("list") == plain


def test_what_an_edit_prints(registry: Registry, tmp_path: Path) -> None:
    """The difference, then the version and why on a line, then only what the person should know of it."""
    file = tmp_path / "new.md"
    file.write_text("# Lessons\n- One.\n")
    *difference, last = call(
        "edit", "memory/default", "--file", str(file), "--reason", "It lacked one"
    ).splitlines()
    assert difference[0].startswith("diff --git a/memory/default/memory.md")
    assert [line for line in difference if line.startswith("+") and "+++" not in line] == ["+- One."]
    assert last == "memory/default is now 1.1.0: It lacked one"
    (unchanged,) = call("edit", "memory/default", "--file", str(file)).splitlines()
    assert "Nothing was changed" in unchanged
    agent = registry.files(registry.stable(), "agent/default/")["agent/default/resource.toml"]
    file.write_bytes(b'skils = ["counting"]\n' + agent)
    told = call("edit", "agent/default", "--file", str(file)).splitlines()
    assert [line for line in told if line.startswith("agent/default is now 1.1.0")]
    assert [line for line in told if "skils" in line and not line.startswith("+")], "an unknown key is told"
