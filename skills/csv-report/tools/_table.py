"""Reads the CSV files that spreadsheets write: a header row, perhaps a byte order mark."""

import csv
from collections.abc import Iterator
from pathlib import Path


def rows(path: str, delimiter: str, *columns: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells by column name; a short row's missing cells are empty.

    Raises ValueError when one of ``columns`` is not in the header.
    """
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, delimiter=delimiter, restval="")
        reader.fieldnames = header = [name.strip() for name in reader.fieldnames or []]
        for column in columns:
            if column not in header:
                raise ValueError(f"{path} has no column '{column}'; it has {', '.join(header) or 'none'}")
        for row in reader:
            yield reader.line_num, {name: row[name].strip() for name in header}


def number(text: str, line: int, column: str) -> float:
    """The cell as a number; raises ValueError with its place."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"line {line}: '{text}' in column '{column}' is not a number") from None
