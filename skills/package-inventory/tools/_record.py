"""Reads RECORD files: CSV rows of path, hash and size."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Item:
    """One listed file. ``digest`` is ``algorithm=value`` or "", ``size`` None where it is not recorded."""

    path: str
    digest: str
    size: int | None


def items(path: str) -> Iterator[Item]:
    """The listed files in order; raises ValueError for a row that is none."""
    with Path(path).open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.reader(file), 1):
            if not row:
                continue
            if len(row) != 3 or not row[0] or not (row[2] == "" or row[2].isdecimal()):
                raise ValueError(f"{path}: row {number} is not 'path,hash,size'")
            yield Item(row[0], row[1], int(row[2]) if row[2] else None)
