"""Files that a person named: trees kept, nothing followed that leads elsewhere, nothing that hangs."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agentos.domain import InputFile, InputSource
from agentos.errors import Invalid
from agentos.sources import SourceReading, read_sources, regex, source_of
from tests.refusals import raises

Read = Callable[..., SourceReading]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def reading(
        *given: str,
        place: str | None = None,
        max_bytes: int = 1 << 20,
        since: float | None = None,
        beside: tuple[InputFile, ...] = (),
        **limits: object,
    ) -> SourceReading:
        found = [source_of(path, tmp_path, place) for path in given]
        sources = [
            InputSource(one.path, one.place, "last_run" if since else "", **limits)  # type: ignore[arg-type]
            for one in found
        ]
        since_by = {"last_run": since} if since else {}
        return read_sources(sources, kept, max_bytes=max_bytes, since=since_by, given=beside)

    return reading


def kept(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def places(reading: SourceReading) -> list[str]:
    return [file.path for file in reading.inputs]


def test_a_name_that_begins_with_a_tilde_is_a_name_where_nobody_is_called_so(
    tmp_path: Path, read: Read
) -> None:
    make(tmp_path, "~$report.docx", "~drafts/one.txt")
    assert places(read("~$report.docx")) == ["~$report.docx"]
    assert places(read("~drafts")) == ["~drafts/one.txt"]


def test_trees_are_kept_so_that_equal_names_do_not_collide(tmp_path: Path, read: Read) -> None:
    make(tmp_path, "docs/README.md", "docs/a/README.md", "src/README.md", "docs/.git/config")
    reading = read("docs", "src")
    assert places(reading) == ["docs/README.md", "docs/a/README.md", "src/README.md"]
    assert {file.sha256 for file in reading.inputs} == {kept(place.encode()) for place in places(reading)}


@pytest.mark.parametrize(
    ("glob", "place", "expected"),
    [
        ("docs/*.md", None, ["docs/README.md"]),
        ("docs/**/*.md", None, ["docs/README.md", "docs/a/README.md"]),
        ("docs/**/*.md", "in", ["in/README.md", "in/a/README.md"]),
        ("*.txt", None, ["one.txt"]),
        ("docs/[!b]/*", None, ["docs/a/README.md"]),
        ("docs/.hid*/*", None, ["docs/.hidden/x"]),
        ("none/*.md", None, None),
    ],
)
def test_globs_keep_the_path_as_it_was_written(
    tmp_path: Path, read: Read, glob: str, place: str | None, expected: list[str] | None
) -> None:
    make(tmp_path, "docs/README.md", "docs/a/README.md", "docs/b/x.txt", "one.txt", "docs/.hidden/x")
    if expected is None:
        with raises(Invalid, names=["none", "No such file"]):
            read(glob, place=place)
    else:
        assert places(read(glob, place=place)) == expected


def test_a_folder_elsewhere_stands_by_its_own_name(tmp_path: Path, read: Read) -> None:
    make(tmp_path, "mail/2026/a.eml", "mail/b.eml")
    assert places(read(str(tmp_path / "mail"))) == ["mail/2026/a.eml", "mail/b.eml"]
    assert places(read(f"{tmp_path}/mail/**/*.eml")) == ["mail/2026/a.eml", "mail/b.eml"]


def test_what_is_no_plain_file_is_left_out_of_a_tree_and_told(tmp_path: Path, read: Read) -> None:
    make(tmp_path, "outside/secret", "in/a")
    (tmp_path / "in/link").symlink_to(tmp_path / "outside/secret")
    (tmp_path / "in/folder").symlink_to(tmp_path / "outside")
    (tmp_path / "in/loop").symlink_to("loop")
    os.mkfifo(tmp_path / "in/fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "in/socket"))
        reading = read("in")
    assert places(reading) == ["in/a"]
    told = {line.split(" ")[0]: line for line in reading.left_out}
    assert set(told) == {"link", "folder", "loop", "fifo", "socket"}
    assert "symbolic link" in told["folder"]


def test_of_a_tree_deeper_than_the_stack_the_upper_part_is_read(deep_tree: Path, read: Read) -> None:
    reading = read(deep_tree.name)
    assert places(reading) == [f"{deep_tree.name}/a.jsonl"]
    assert len(reading.left_out) == 1


@pytest.mark.parametrize("name", ["fifo", "/dev/zero", "gone.txt", "loop"])
def test_named_by_itself_it_is_an_error_at_once(tmp_path: Path, read: Read, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(Invalid) as error:
        read(name)
    assert len(error.value.faults) == 1


def test_a_link_that_a_person_names_is_read(tmp_path: Path, read: Read) -> None:
    make(tmp_path, "real/a.txt")
    (tmp_path / "latest").symlink_to("real")
    (tmp_path / "now.txt").symlink_to("real/a.txt")
    assert places(read("latest", "now.txt")) == ["latest/a.txt", "now.txt"]


def test_a_file_that_becomes_a_link_while_it_is_read_is_not_followed(tmp_path: Path, read: Read) -> None:
    make(tmp_path, "in/a", "in/b", "secret")

    def swap(content: bytes) -> str:
        (tmp_path / "in/b").unlink(missing_ok=True)
        (tmp_path / "in/b").symlink_to(tmp_path / "secret")
        return kept(content)

    with raises(Invalid, message="inputs.became_a_link"):
        read_sources([source_of("in", tmp_path, None)], swap, max_bytes=1 << 20, since={})


def test_sizes_and_counts_have_limits_that_say_what_to_raise(tmp_path: Path, read: Read) -> None:
    make(tmp_path, *(f"in/{number}.txt" for number in range(5)))
    with raises(Invalid, names=["max_files"]):
        read("in", max_files=4)
    with raises(Invalid, names=["max_bytes"]):
        read("in", max_bytes=10)
    with raises(Invalid, names=["max_bytes"]):
        read("in", **{"max_bytes": 10})
    assert places(read("in", exclude=("[1-4].txt",))) == ["in/0.txt"]


def test_only_what_changed_since_then(tmp_path: Path, read: Read) -> None:
    make(tmp_path, "in/old", "in/moved")
    long_ago = time.time() - 1000
    os.utime(tmp_path / "in/old", (long_ago, long_ago))
    assert places(read("in", since=time.time() + 60)) == []
    assert places(read("in", since=long_ago + 1)) == ["in/moved", "in/old"]  # its inode changed just now


def test_inputs_that_exclude_each_other_are_told(tmp_path: Path, read: Read) -> None:
    make(tmp_path, "a", "b/c")
    with raises(Invalid, message="inputs.same_place", hidden={"folder": tmp_path}):
        read("a", beside=(InputFile("a", "0" * 64, 1),))
    with raises(Invalid, message="inputs.file_and_folder"):
        read("b", beside=(InputFile("b", "0" * 64, 1),))


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("**", ["a", "a/b/c"], [".a", "a/.b", ".a/b"]),
        ("**/*.md", ["x.md", "a/b/x.md"], ["x.mdx", "a/.md"]),
        ("a?c", ["abc"], ["a/c", "abbc"]),
        ("[a-c].log", ["b.log"], ["d.log", "[a-c].log"]),
        ("a+(b)", ["a+(b)"], ["aab"]),
        ("[x", ["[x"], ["x"]),
        ("[z-a].log", [], ["a.log", "z.log", "[z-a].log"]),  # holds no letter, as in a shell
        ("[!z-a]", ["b"], ["bb"]),
    ],
)
def test_patterns(pattern: str, yes: list[str], no: list[str]) -> None:
    matches = re.compile(regex(pattern)).fullmatch
    assert [name for name in [*yes, *no] if matches(name)] == yes


def test_nothing_is_stored_of_a_folder_with_too_many_files(tmp_path: Path) -> None:
    make(tmp_path, *(f"in/{number}.txt" for number in range(5)))
    stored: list[bytes] = []

    def keep(content: bytes) -> str:
        stored.append(content)
        return kept(content)

    source = replace(source_of("in", tmp_path, None), max_files=4)
    with pytest.raises(Invalid) as refused:
        read_sources([source], keep, max_bytes=1 << 20, since={})
    assert stored == []
    assert refused.value.faults[0].split(": ", 1)[1].startswith("5 files")
