"""The tools that any agent has: files, search, shell and python, each held to the workspace where it can be."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentos.worker.faults import Failed
from tests.refusals import raises

Call = Callable[..., Any]


@pytest.fixture
def outside(tmp_path: Path, workspace: Path) -> Path:
    """A file beside the workspace, and a link in it that leads there."""
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (workspace / "link").symlink_to(secret)
    (workspace / "up").symlink_to(tmp_path)
    return secret


WAYS_OUT = ["../secret.txt", "link", "up/secret.txt"]


@pytest.mark.parametrize("path", [*WAYS_OUT, "/etc/hostname"])
@pytest.mark.parametrize(
    ("tool", "args"),
    [("read_file", {}), ("write_file", {"text": "x"}), ("edit_file", {"old": "secret", "new": "x"}), ("search_files", {"pattern": "s"})],
)  # fmt: skip
def test_no_way_leads_out_of_the_workspace(
    call: Call, outside: Path, tool: str, args: Any, path: str
) -> None:
    with raises(ValueError, message="tool.outside", hidden={"path": path}):
        call(tool, path=path, **args)
    assert outside.read_text() == "secret"


def test_links_are_not_followed_by_lists_and_searches(call: Call, outside: Path, workspace: Path) -> None:
    (workspace / "plain.txt").write_text("secret")
    assert [file["path"] for file in call("list_files")["files"]] == ["link", "plain.txt", "up"]
    assert [match["path"] for match in call("search_files", pattern="secret")["matches"]] == ["plain.txt"]
    with raises(ValueError, message="tool.outside", hidden={"path": "up"}):
        call("list_files", path="up")


def test_read_file(call: Call, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\nthree")
    assert call("read_file", path="a.txt") == {"lines": 3, "first": 1, "last": 3, "text": "one\ntwo\nthree"}
    assert call("read_file", path="a.txt", first=2, last=2)["text"] == "two\n"
    with raises(ValueError, message="read_file.no_line"):
        call("read_file", path="a.txt", first=4)
    (workspace / "empty").touch()
    assert call("read_file", path="empty") == {"lines": 0, "first": 1, "last": 0, "text": ""}
    (workspace / "bytes").write_bytes(b"ab\xff")
    with raises(ValueError, message="read_file.not_text"):
        call("read_file", path="bytes")
    with raises(FileNotFoundError, message="read_file.no_file"):
        call("read_file", path="b.txt")
    with raises(IsADirectoryError, message="read_file.folder"):
        call("read_file", path=".")
    os.mkfifo(workspace / "pipe")
    with pytest.raises(FileNotFoundError):
        call("read_file", path="pipe")


def test_write_file(call: Call, workspace: Path) -> None:
    assert call("write_file", path="new/a.txt", text="é\r\n") == {
        "path": "new/a.txt",
        "bytes": 4,
        "replaced": False,
    }
    assert call("write_file", path="new/a.txt", text="x", append=True)["bytes"] == 5
    assert call("write_file", path="new/a.txt", text="y")["replaced"] is True
    assert (workspace / "new/a.txt").read_bytes() == b"y"
    with pytest.raises(IsADirectoryError):
        call("write_file", path="new", text="x")


def test_edit_file(call: Call, workspace: Path) -> None:
    file = workspace / "a.py"
    file.write_bytes(b"def a():\r\n    return 1\r\n\r\ndef b():\r\n    return 1\r\n")
    before = file.read_bytes()
    with raises(ValueError, message="edit_file.several"):
        call("edit_file", path="a.py", old="return 1", new="return 2")
    with raises(ValueError, message="edit_file.nearly"):
        call("edit_file", path="a.py", old="def bb():", new="")
    assert file.read_bytes() == before
    edited = call("edit_file", path="a.py", old="def b():\r\n    return 1", new="def b():\r\n    return 2")
    assert edited == {"replaced": 1, "first_line": 4}
    assert file.read_bytes() == before.replace(b"b():\r\n    return 1", b"b():\r\n    return 2")
    file.write_bytes(before)
    # as read_file shows it
    assert call("edit_file", path="a.py", old="1\n\n", new="1\n\n\n")["first_line"] == 2
    assert file.read_bytes() == before.replace(b"1\r\n\r\n", b"1\r\n\r\n\r\n")
    assert call("edit_file", path="a.py", old="return", new="yield", all=True)["replaced"] == 2
    with pytest.raises(Failed, match="old"):
        call("edit_file", path="a.py", old="", new="x")


def test_an_edit_of_each_comma_takes_no_longer_than_the_file(call: Call, workspace: Path) -> None:
    """80,000 rows took thirteen seconds."""
    (workspace / "a.csv").write_text("a,b,c\n" * 80_000)
    began = time.process_time()
    assert call("edit_file", path="a.csv", old=",", new=";", all=True) == {
        "replaced": 160_000,
        "first_line": 1,
    }
    assert time.process_time() - began < 2.0


def test_an_edit_over_mixed_line_ends_says_what_is_in_the_way(call: Call, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\nthree\n")
    with raises(ValueError, message="edit_file.line_ends"):
        call("edit_file", path="a.txt", old="one\ntwo", new="x")
    assert call("edit_file", path="a.txt", old="one\r\ntwo", new="x")["replaced"] == 1


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("**/*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("src/**/*.py", ["src/b.py", "src/deep/c.py"]),
        ("./src/*.py", ["src/b.py", "src/deep/c.py"]),
        ("**/b.py", ["src/b.py"]),
        ("a.py", ["a.py"]),
        ("deep/*.py", []),
    ],
)
def test_lists_and_searches_take_patterns_alike(
    call: Call, workspace: Path, pattern: str, found: list[str]
) -> None:
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/d.txt"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("word")
    assert [file["path"] for file in call("list_files", pattern=pattern)["files"]] == found
    assert [hit["path"] for hit in call("search_files", pattern="word", files=pattern)["matches"]] == found


def test_a_line_is_the_same_line_for_every_tool(call: Call, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes("\ufeffone\x0c1\r\ntwo\u20282\r\nthree\r\n".encode())
    assert call("read_file", path="a.txt", first=3)["text"] == "three\n"
    assert call("search_files", pattern="^three$")["matches"][0]["line"] == 3
    assert call("search_files", pattern="^one")["matches"][0]["line"] == 1
    assert call("edit_file", path="a.txt", old="three", new="3")["first_line"] == 3


def test_a_name_that_is_no_text_hides_no_other(call: Call, workspace: Path) -> None:
    (workspace / os.fsdecode(b"\xff.txt")).write_text("total")
    (workspace / "a.txt").write_text("total")
    names = ["a.txt", "\ufffd.txt"]
    assert [file["path"] for file in call("list_files")["files"]] == names
    assert [match["path"] for match in call("search_files", pattern="total")["matches"]] == names


def test_list_files(call: Call, workspace: Path) -> None:
    for name in ("b.csv", "a/x.csv", "a/y.txt"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(name)
    assert call("list_files", pattern="*.csv")["files"] == [
        {"path": "a/x.csv", "bytes": 7},
        {"path": "b.csv", "bytes": 5},
    ]
    assert call("list_files", pattern="a/*", limit=1) == {
        "files": [{"path": "a/x.csv", "bytes": 7}],
        "left_out": 1,
    }
    with pytest.raises(NotADirectoryError):
        call("list_files", path="b.csv")


def test_search_files(call: Call, workspace: Path) -> None:
    (workspace / "a.txt").write_text("Total: 1\nnothing\ntotal: 2\n" + "total " * 200)
    (workspace / "b.bin").write_bytes(b"total\0")
    (workspace / "c.py").write_text("total")
    found = call("search_files", pattern="^total", files="*.txt")
    assert [(match["line"], len(match["text"])) for match in found["matches"]] == [(3, 8), (4, 401)]
    assert len(call("search_files", pattern="^total", ignore_case=True)["matches"]) == 4
    assert call("search_files", pattern="total", limit=1)["more"] is True
    assert call("search_files", pattern="total", path="c.py")["matches"][0]["path"] == "c.py"
    (workspace / "long.js").write_text("x" * 5_000 + "needle" + "y" * 5_000)
    (hit,) = call("search_files", pattern="needle")["matches"]
    assert "needle" in hit["text"]
    assert len(hit["text"]) <= 402
    with pytest.raises(ValueError, match="is no regular expression"):
        call("search_files", pattern="(")
    with (workspace / "big.txt").open("wb") as file:
        file.truncate(9 << 20)
    assert call("search_files", pattern="none")["skipped"] == ["big.txt"]


@pytest.mark.parametrize(
    ("tool", "name", "good", "bad", "slow", "much"),
    [
        ("shell", "command", "echo 4 > f; cat f; echo oh >&2", "exit 3", "sleep 60", "yes | head -c 1000000"),
        ("python", "code", "import sys\nprint(2 + 2)\nopen('f', 'w').write('4')\nprint('oh', file=sys.stderr)",
         "import sys\nsys.exit(3)", "import time\ntime.sleep(60)", "print('y\\n' * 500000)"),
    ],
)  # fmt: skip
def test_shell_and_python(
    call: Call, workspace: Path, tool: str, name: str, good: str, bad: str, slow: str, much: str
) -> None:
    assert call(tool, **{name: good}) == {"exit": 0, "timed_out": False, "stdout": "4\n", "stderr": "oh\n"}
    assert (workspace / "f").read_text().strip() == "4"
    assert call(tool, **{name: bad})["exit"] == 3
    began = time.monotonic()
    late = call(tool, **{name: slow}, timeout_s=0.3)
    assert (late["timed_out"], late["exit"]) == (True, -9)
    assert time.monotonic() - began < 10
    text = call(tool, **{name: much})["stdout"]
    assert len(text) < 31_000
    assert "bytes left out" in text


def test_what_a_command_leaves_running_does_not_hold_it_up(call: Call, workspace: Path) -> None:
    began = time.monotonic()
    assert call("shell", command="sleep 60 & echo $! > left; echo done")["stdout"] == "done\n"
    assert time.monotonic() - began < 30
    os.kill(int((workspace / "left").read_text()), signal.SIGKILL)


def test_python_imports_the_workspace_and_shows_where_it_failed(call: Call, workspace: Path) -> None:
    (workspace / "mine.py").write_text("N = 7\n")
    assert call("python", code="import mine\nprint(mine.N)")["stdout"] == "7\n"
    failed = call("python", code="x = 1\nraise ValueError('no')")
    assert failed["exit"] == 1
    assert "line 2" in failed["stderr"]
    assert "ValueError: no" in failed["stderr"]
    assert sorted(path.name for path in workspace.iterdir()) == ["mine.py"]
