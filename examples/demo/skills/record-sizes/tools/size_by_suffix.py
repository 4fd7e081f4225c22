"""Adds up the files of an installed distribution from its RECORD file."""

import csv
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "size_by_suffix",
    "description": "Number of files and sum of their recorded sizes in a RECORD file, optionally only those with a suffix",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    record: str
    suffix: str = ""


class Output(BaseModel):
    files: int
    bytes: int
    largest: str


def run(input: Input) -> Output:
    files = 0
    total = 0
    largest = ("", -1)
    with Path(input.record).open(newline="", encoding="utf-8") as handle:
        for path, _hash, recorded in csv.reader(handle):
            if not path.endswith(input.suffix):
                continue
            size = int(recorded)
            files += 1
            total += size
            if size > largest[1]:
                largest = (path, size)
    return Output(files=files, bytes=total, largest=largest[0])
