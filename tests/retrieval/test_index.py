"""The index on a real registry: what it finds, what it survives, what it must not be told."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentos.domain import Kind, Snapshot
from agentos.errors import ErrorKind, Unavailable
from agentos.registry.store import Registry
from agentos.retrieval import index as module
from agentos.retrieval.index import Index
from tests.homes import pack_registry
from tests.refusals import raises

KINDS = (Kind.TOOL, Kind.SKILL, Kind.MEMORY)


def tool(name: str, description: str, parameters: str = "path") -> dict[str, bytes]:
    fields = "".join(f"    {word}: str\n" for word in parameters.split())
    card = {"name": name.replace("-", "_"), "description": description, "effects": ["pure"]}
    source = f'"""It."""\nTOOL = {card!r}\nclass Input:\n{fields}\nclass Output:\n    ok: bool\ndef run(input):\n    return 1\n'
    document = f"description = {description!r}\n"
    return {f"tool/{name}/tool.py": source.encode(), f"tool/{name}/resource.toml": document.encode()}


def skill(name: str, description: str, body: str = "") -> dict[str, bytes]:
    text = f"---\nname: {name}\ndescription: {description!r}\n---\n\n{body}\n"
    return {f"skill/{name}/SKILL.md": text.encode()}


def memory(name: str, *lines: str) -> dict[str, bytes]:
    text = "# Lessons\n\n" + "".join(f"{line}\n" for line in lines)
    return {
        f"memory/{name}/memory.md": text.encode(),
        f"memory/{name}/resource.toml": b'description = "What."\n',
    }


SEED = {
    **tool("unzip-archive", "Extract the members of a zip archive", "archive target"),
    **tool("word-count", "Count lines and words of a text file"),
    **tool("parse-date", "Turn a written date into ISO 8601", "dayfirst"),
    **skill("csv-report", "Adds up the columns of a CSV file", "Empty cells are counted, not added."),
    **memory(
        "house",
        "- The fiscal year starts in April",
        "- Weights from Boston are in pounds",
        "  and never in kilograms",
    ),
}


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack_registry(
        Registry.init(tmp_path_factory.mktemp("seeded") / "registry.git", SEED).repository.path
    )


@pytest.fixture
def registry(seeded: Path, tmp_path: Path) -> Registry:
    shutil.copytree(seeded, tmp_path / "registry.git")
    return Registry(tmp_path / "registry.git")


@pytest.fixture
def index(tmp_path: Path, registry: Registry) -> Index:
    return Index(tmp_path / "index.db", registry)


def names(index: Index, snapshot: Snapshot, query: str, limit: int = 10) -> list[str]:
    return [str(found.resource) for found in index.find(snapshot, query, KINDS, limit)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("extracting from archives", "tool/unzip-archive"),
        ("wordCount", "tool/word-count"),
        ("wordcount", "tool/word-count"),
        ("WORD_COUNT of it", "tool/word-count"),
        ("dayfirst", "tool/parse-date"),
        ("are empty cells added?", "skill/csv-report"),
        ("fiscal years", "memory/house"),
    ],
)
def test_words_find_what_they_name(index: Index, registry: Registry, query: str, expected: str) -> None:
    assert names(index, registry.stable(), query)[0] == expected


def test_only_the_kinds_asked_for_and_at_most_the_limit(index: Index, registry: Registry) -> None:
    found = index.find(registry.stable(), "file archive words columns year", (Kind.TOOL,), 10)
    assert {item.resource.kind for item in found} == {Kind.TOOL}
    assert len(names(index, registry.stable(), "file archive words columns year", limit=2)) == 2
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "a OR",
        "NEAR(",
        "name:zip",
        "zip*",
        "^zip",
        "'; DROP TABLE entries; --",
        "{zip}",
        "-zip",
        "\x00zip",
        "zip" * 9000,
        "",
        "   ",
        "?!",
        "the",
        "�",
        "ﬀ İ ẞ 漢字",
    ],
)
def test_no_text_is_query_language(index: Index, registry: Registry, query: str) -> None:
    snapshot = registry.stable()
    index.find(snapshot, query, KINDS, 5)
    index.recall(snapshot, query)
    assert names(index, snapshot, "zip")[:1] == ["tool/unzip-archive"]


def test_a_search_sees_its_snapshot_and_nothing_else(index: Index, registry: Registry) -> None:
    before = registry.stable()
    registry.commit(skill("archive-mail", "Archive old mail"), "Add", "edit")
    after = registry.commit(tool("unzip-archive", "Nothing of the kind"), "Change", "edit")
    assert "skill/archive-mail" in names(index, after, "archive mail")
    assert names(index, before, "members") == ["tool/unzip-archive"]
    assert names(index, after, "members") == []
    assert names(index, before, "mail") == []


def test_scores_do_not_depend_on_what_else_was_indexed(tmp_path: Path, registry: Registry) -> None:
    """A replay has to see the bundle that the run saw, whatever was promoted in between."""
    first = registry.stable()
    fresh = Index(tmp_path / "a.db", registry)
    expected = fresh.find(first, "zip archive of words", KINDS, 10)
    others = [registry.commit(skill(f"zip-{i}", "A zip archive of words"), "Add", "edit") for i in range(8)]
    for index in (fresh, Index(tmp_path / "b.db", registry)):
        for other in others:
            index.find(other, "zip", KINDS, 10)
        assert index.find(first, "zip archive of words", KINDS, 10) == expected


def test_equal_scores_are_sorted_by_name(index: Index, registry: Registry) -> None:
    files: dict[str, bytes] = {}
    for letter in "dbca":
        files |= skill(f"same-{letter * 2}", "Frobnicates")
    snapshot = registry.commit(files, "Add", "edit")
    assert names(index, snapshot, "frobnicate") == [f"skill/same-{letter * 2}" for letter in "abcd"]


def test_only_new_versions_are_read(tmp_path: Path, registry: Registry) -> None:
    read: list[str] = []

    class Counting(Registry):
        def files(self, snapshot: Snapshot, prefix: str) -> Mapping[str, bytes]:
            read.append(prefix)
            return super().files(snapshot, prefix)

    counting = Counting(registry.repository.path)
    index = Index(tmp_path / "index.db", counting)
    index.refresh(registry.stable())
    assert len(read) == 5
    after = registry.commit(tool("parse-date", "Reads dates"), "Change", "edit")
    names(index, after, "date")
    assert read[5:] == ["tool/parse-date"]
    names(Index(tmp_path / "index.db", counting), after, "date")
    assert len(read) == 6


def test_recall_gives_lessons(index: Index, registry: Registry) -> None:
    (found,) = index.recall(registry.stable(), "boston weight", 5)
    assert found["id"] == "memory/house#2"
    assert found["text"] == "Weights from Boston are in pounds and never in kilograms"
    assert found["score"] > 0
    assert index.recall(registry.stable(), "unzip", 5) == []


def test_a_memory_without_a_lesson_gives_none(index: Index, registry: Registry) -> None:
    snapshot = registry.commit(memory("empty-one"), "Add", "edit")
    assert names(index, snapshot, "empty") == ["memory/empty-one", "skill/csv-report"]
    assert index.recall(snapshot, "empty") == []


def test_a_resource_that_breaks_its_rules_is_found_by_its_name(tmp_path: Path) -> None:
    from agentos.testing.registry import FakeRegistry

    registry = FakeRegistry(
        {"skill/broken-thing/SKILL.md": "no front matter", "tool/half-made/tool.py": "def ("}
    )
    index = Index(tmp_path / "index.db", registry)
    assert names(index, registry.stable(), "broken") == ["skill/broken-thing"]
    assert names(index, registry.stable(), "half") == ["tool/half-made"]


# --- the file ---------------------------------------------------------------------------------


def test_a_deleted_file_is_made_again_while_in_use(index: Index, registry: Registry, tmp_path: Path) -> None:
    expected = names(index, registry.stable(), "zip")
    (tmp_path / "index.db").unlink()
    assert names(index, registry.stable(), "zip") == expected
    assert (tmp_path / "index.db").exists()


@pytest.mark.parametrize("damage", ["garbage", "header", "tail", "middle", "empty", "tables", "format"])
def test_a_damaged_file_is_made_again(registry: Registry, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "index.db"
    first = Index(path, registry)
    expected = names(first, registry.stable(), "zip")
    first.close()
    content = path.read_bytes()
    if damage in ("tables", "format"):
        with sqlite3.connect(path) as connection:
            connection.execute("DROP TABLE entries" if damage == "tables" else "PRAGMA user_version = 99")
        connection.close()
    else:
        path.write_bytes(
            {
                "garbage": os.urandom(len(content)),
                "header": b"x" * 100 + content[100:],
                "tail": content[: len(content) // 2],
                "middle": content[:4096] + os.urandom(len(content) - 8192) + content[-4096:],
                "empty": b"",
            }[damage]
        )
    assert names(Index(path, registry), registry.stable(), "zip") == expected


def test_damage_under_an_open_index_is_mended(index: Index, registry: Registry, tmp_path: Path) -> None:
    expected = names(index, registry.stable(), "zip")
    content = (tmp_path / "index.db").read_bytes()
    with (tmp_path / "index.db").open("r+b") as file:
        file.write(os.urandom(len(content)))
    after = registry.commit(skill("other-one", "Other"), "Add", "edit")
    assert names(index, after, "zip") == expected


def test_a_place_that_cannot_be_written_is_said(registry: Registry, tmp_path: Path) -> None:
    index = Index(tmp_path / "nowhere" / "index.db", registry)
    with raises(Unavailable, ErrorKind.NOT_WRITTEN):
        index.find(registry.stable(), "zip", KINDS, 5)


def test_many_threads_share_one_index(index: Index, registry: Registry) -> None:
    start = threading.Barrier(8)

    def search(number: int) -> list[str]:
        start.wait()
        return names(index, registry.stable(), "zip archive words")

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(search, range(8)))
    assert len({tuple(result) for result in results}) == 1


@pytest.mark.slow
def test_several_processes_build_one_file(registry: Registry, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from agentos.registry.store import Registry\n"
        "from agentos.retrieval.index import Index\n"
        "registry = Registry(Path(sys.argv[1]))\n"
        "print([str(f.resource) for f in Index(Path(sys.argv[2]), registry).find(registry.stable(), 'zip file')])\n"
    )
    command = [sys.executable, "-c", script, str(registry.repository.path), str(tmp_path / "index.db")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = {process.communicate(timeout=60)[0] for process in running}
    assert len(said) == 1
    assert "tool/unzip-archive" in said.pop()
    with sqlite3.connect(tmp_path / "index.db") as connection:
        assert connection.execute("SELECT count(*) FROM entries").fetchone() == (6,)
    connection.close()


def test_versions_of_the_past_are_cleared_away_and_come_back(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SPARE", 3)
    monkeypatch.setattr(module, "_VIEWS", 1)
    index, other = (Index(tmp_path / "index.db", registry) for _ in range(2))
    first = registry.stable()
    expected = names(other, first, "zip")
    snapshots = [
        registry.commit(tool("unzip-archive", f"Number {i} zip"), "Change", "edit") for i in range(15)
    ]
    for snapshot in snapshots:
        names(index, snapshot, "zip")
    with sqlite3.connect(tmp_path / "index.db") as connection:
        (count,) = connection.execute("SELECT count(*) FROM entries").fetchone()
    connection.close()
    assert count <= 2 * 6 + 3
    assert names(other, first, "zip") == expected
    assert names(index, snapshots[0], "0") == ["tool/unzip-archive"]


def test_what_is_told_in_passing_is_found_however_long_the_text(index: Index, registry: Registry) -> None:
    """The share of the words that stand anywhere decides, where names and descriptions say little."""
    filler = "Of many other things. " * 2_000
    registry.commit(
        skill("tar-kit", "Handles files", f"{filler}Unpacks tarballs onto a tape."), "Add", "edit"
    )
    after = registry.commit(skill("tape-player", "Handles files", filler), "Add", "edit")
    assert names(index, after, "unpack a tarball from tape") == ["skill/tar-kit", "skill/tape-player"]


@pytest.mark.slow
def test_bodies_of_other_snapshots_change_no_score(tmp_path: Path, registry: Registry) -> None:
    """Neither how rare a word is nor who is looked at may come from what was indexed in between."""
    first = registry.commit(skill("tar-kit", "Handles files", "Unpacks tarballs."), "Add", "edit")
    index = Index(tmp_path / "a.db", registry)
    expected = index.find(first, "unpack tarballs of files", KINDS, 10)
    many = {k: v for n in range(250) for k, v in skill(f"other-{n}", "It", "Unpacks tarballs.").items()}
    later = registry.commit(many, "Add", "edit")
    for searched in (index, Index(tmp_path / "b.db", registry)):
        assert len(searched.find(later, "unpack tarballs of files", KINDS, 300)) > 250 - len(SEED)
        assert searched.find(first, "unpack tarballs of files", KINDS, 10) == expected
