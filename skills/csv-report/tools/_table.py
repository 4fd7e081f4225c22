"""Reads the CSV files that spreadsheets write: a header row, perhaps a byte order mark."""

import csv
from collections.abc import Iterator
from math import isfinite
from pathlib import Path


def rows(path: str, delimiter: str, *columns: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells by column name; a short row's missing cells are empty.

    Raises ValueError when one of ``columns``, or without them any column with a name, is not there once.
    """
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        lines = filter(None, reader)  # empty ones say nothing, also above the header
        header = [name.strip() for name in next(lines, [])]
        for column in columns or filter(None, header):
            if column not in header:
                raise ValueError(f"{path} has no column '{column}'; it has {', '.join(header) or 'none'}")
            if header.count(column) > 1:
                raise ValueError(f"{path} has the column '{column}' {header.count(column)} times")
        for row in lines:
            cells = [cell.strip() for cell in row] + [""] * (len(header) - len(row))
            yield reader.line_num, dict(zip(header, cells, strict=False))


def number(text: str, line: int, column: str) -> float:
    """The cell as a number; raises ValueError with its place, also for "nan", "inf" and Python's own "1_000"."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value) or "_" in text:
        raise ValueError(f"line {line}: '{text}' in column '{column}' is not a number")
    return value
