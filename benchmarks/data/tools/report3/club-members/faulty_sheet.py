"""Tables in files with separators."""

import csv
from collections.abc import Iterator
from pathlib import Path


def separator(first: str) -> str:
    """The one that occurs most often in the first line."""
    return max(",;\t", key=first.count)


def rows(path: str) -> Iterator[dict[str, str]]:
    """Each row by its headers, without the spaces around."""
    text = Path(path).read_text(encoding="utf-8")
    lines = text.splitlines()
    if not lines:
        return
    for row in csv.DictReader(lines, delimiter=separator(lines[0])):
        yield {key.strip(): (value or "").strip() for key, value in row.items() if key}
