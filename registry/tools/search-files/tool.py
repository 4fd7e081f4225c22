"""Finds lines by a regular expression."""

import fnmatch
import os
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "search_files",
    "description": "Find the lines of text files that match a regular expression, with file and line number",
    "effects": ["read"],
    "dependencies": [],
}

FILE_MAX = 8 << 20  # bytes; a larger file is left out, and named
LINE_MAX = 400  # characters of a line that are shown


class Input(BaseModel):
    pattern: str = Field(min_length=1, description="As Python's re understands it")
    path: str = Field(".", description="A folder or a file, relative to the workspace")
    files: str = Field("*", description="Names with wildcards, such as *.py, or paths such as src/*.py")
    ignore_case: bool = False
    limit: int = Field(100, ge=1, le=2_000, description="At most so many lines")


class Match(BaseModel):
    path: str
    line: int
    text: str


class Output(BaseModel):
    matches: list[Match]
    more: bool = Field(description="Whether there are more than the limit")
    skipped: list[str] = Field(description="Files that are too large to be searched")


def run(input: Input) -> Output:
    """Files that are no text are passed over. Raises ValueError for a pattern that is none."""
    try:
        wanted = re.compile(input.pattern, re.IGNORECASE if input.ignore_case else 0)
    except re.error as error:
        raise ValueError(f"{input.pattern!r} is no regular expression: {error}") from None
    start, root = Path(input.path).resolve(), Path.cwd().resolve()
    if not start.is_relative_to(root):
        raise ValueError(f"{input.path} lies outside the workspace: give a path relative to it")
    if not start.exists():
        raise FileNotFoundError(f"there is no {input.path}")
    matches: list[Match] = []
    skipped: list[str] = []
    for path in files_below(start):
        inside = path.relative_to(root)
        if path != start and not fits(inside.as_posix(), input.files):
            continue
        name = os.fsencode(inside).decode("utf-8", "replace")
        if path.stat().st_size > FILE_MAX:
            skipped.append(name)
            continue
        for number, line in lines_of(path):
            hit = wanted.search(line)
            if hit is None:
                continue
            if len(matches) == input.limit:
                return Output(matches=matches, more=True, skipped=skipped)
            matches.append(Match(path=name, line=number, text=around(line, hit.start())))
    return Output(matches=matches, more=False, skipped=skipped)


def around(line: str, place: int) -> str:
    """The line, or of a long one the part with that place in it."""
    if len(line) <= LINE_MAX:
        return line
    first = 0 if place < LINE_MAX else place - LINE_MAX // 2
    last = first + LINE_MAX
    return f"{'…' if first else ''}{line[first:last]}{'…' if last < len(line) else ''}"


def files_below(start: Path) -> Iterator[Path]:
    """Plain files in the order of their paths; links are not followed."""
    if start.is_file():
        yield start
        return
    for place, folders, names in os.walk(start):
        folders.sort()
        for name in sorted(names):
            path = Path(place) / name
            if path.is_file() and not path.is_symlink():
                yield path


def fits(path: str, pattern: str) -> bool:
    """Whether the path below the workspace, or its last part, does; ``**/`` may stand for no folder."""
    pattern = pattern.removeprefix("./")
    ways = {pattern, pattern.removeprefix("**/"), pattern.replace("/**/", "/")}
    return any(fnmatch.fnmatch(part, way) for part in (path, path.rpartition("/")[2]) for way in ways)


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered from 1, without their ends; none of a file that is no text."""
    content = path.read_bytes()
    if b"\0" not in content[:8_192]:
        text = StringIO(content.decode("utf-8-sig", "replace"), newline=None)
        yield from enumerate((line.removesuffix("\n") for line in text), start=1)
