"""The example's tasks: real files, and answers worked out here without the tools that are asked.

All are given to the agent `desk`. What the harness has to do with it is told in README.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

Task = dict[str, Any]

DATA = Path(__file__).resolve().parents[1] / "data"
SOURCES = Path(__file__).resolve().parents[1] / "demo" / "skills"


def daily() -> list[Task]:
    """Sizes and first lines of files: one of them, several in the order of their names, and several in another."""
    return [*_one_file(), *_in_order(), *_out_of_order()]


def _one_file() -> Iterator[Task]:
    for path in sorted((DATA / "stock").iterdir())[:7]:
        yield _count(path)


def _in_order() -> Iterator[Task]:
    tills, logs = sorted((DATA / "till").iterdir()), sorted((DATA / "logs").iterdir())
    for paths in (tills[:3], tills[2:6], logs[:2], logs[2:5], logs[3:7], tills[4:8]):
        yield _count(*paths)
    for paths in (logs[:3], tills[1:4], logs[4:]):
        yield _first_line(*paths)


def _out_of_order() -> Iterator[Task]:
    tills, mails = sorted((DATA / "till").iterdir()), sorted((DATA / "mail").iterdir())
    yield _count(tills[2], tills[0], tills[1])
    yield _count(mails[4], mails[1], mails[2], mails[0])
    yield _count(mails[3], mails[5], mails[2])
    yield _first_line(tills[3], tills[0], tills[2])
    yield _first_line(mails[2], mails[0], mails[1], mails[3])


def next_day() -> list[Task]:
    """More of the same kind: probation counts no work that the repair was tried on."""
    tills, mails = sorted((DATA / "till").iterdir()), sorted((DATA / "mail").iterdir())
    return [
        _count(mails[2], mails[1]),
        _count(tills[4], tills[2], tills[3]),
        _first_line(tills[1], tills[0]),
        _first_line(mails[4], mails[5], mails[3]),
    ]


def quotes() -> list[Task]:
    """Lines of source files, to the letter: blanks in front count."""
    chosen = [(path, 30, 33) for path in sorted(SOURCES.glob("*/tools/*.py"))[:4]]
    return [_quote(path, first, last) for path, first, last in chosen]


def remark(folder: Path) -> Task:
    """What somebody noted at the end of a month, as it is put into a letter: without the blanks around it."""
    note = folder / "march.txt"
    note.write_text("\nAll tills agree with the bank.\n\n", encoding="utf-8")
    return {
        "name": "the remark on March",
        "goal": "Read the remark on March, to be put into a letter.",
        "agent": "desk",
        "call": {"tool": "read_file", "args": {"path": note.name}},
        "inputs": [{"path": str(note), "as": note.name}],
        "effects": ["read"],
        "checks": [{"equals": {"path": "text", "value": "All tills agree with the bank."}}],
    }


def _count(*paths: Path) -> Task:
    sizes = [_size(path.read_bytes()) for path in paths]
    return _task("Count", "word_count", paths, sizes)


def _size(content: bytes) -> dict[str, int]:
    return {"lines": content.count(b"\n"), "words": len(content.split()), "bytes": len(content)}


def _first_line(*paths: Path) -> Task:
    texts = [path.read_text("utf-8").splitlines(keepends=True) for path in paths]
    told = [{"lines": len(lines), "first": 1, "last": 1, "text": lines[0]} for lines in texts]
    return _task("Read the first line of", "read_file", paths, told, first=1, last=1)


def _quote(path: Path, first: int, last: int) -> Task:
    lines = path.read_text("utf-8").splitlines(keepends=True)
    task = _task(f"Quote lines {first} to {last} of", "read_file", [path], [], first=first, last=last)
    return {**task, "checks": [{"equals": {"path": "text", "value": "".join(lines[first - 1 : last])}}]}


def _task(what: str, tool: str, paths: Any, expected: list[Any], **args: Any) -> Task:
    names = [path.name for path in paths]
    several = len(names) > 1
    goal = f"{what} {', '.join(names)}"
    return {
        "name": goal,
        "goal": goal,
        "agent": "desk",
        "call": {"tool": tool, "args": {"path": names if several else names[0], **args}},
        "inputs": [{"path": str(path), "as": path.name} for path in paths],
        "effects": ["read"],
        "checks": [{"equals": {"value": expected if several else (expected or [None])[0]}}],
    }
