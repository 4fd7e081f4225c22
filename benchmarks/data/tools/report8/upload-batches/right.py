"""Batches of files for a service with limits."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "upload_batches",
    "description": "Batches of files from lines NAME SIZE (bytes, or with k or M for 1024 and 1024 x 1024), each of at most so many files and bytes; larger files are left out",
    "effects": ["read"],
    "dependencies": [],
}

UNITS = {"": 1, "k": 1024, "m": 1024 * 1024}
SIZE = re.compile(r"(\d+)\s*([kKmM]?)[bB]?")


class Input(BaseModel):
    path: str = Field(description="One file a line, in the order in which they are sent")
    files: int = Field(default=4, ge=1, description="The most files of one request")
    limit: str = Field(default="10k", description="The most bytes of one request")


class Group(BaseModel):
    names: list[str]
    bytes: int


class Output(BaseModel):
    batches: list[Group]
    too_large: list[str]


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@dataclass
class Report:
    """What could not be sent."""

    too_large: list[str] = field(default_factory=list)


def size_of(text: str) -> int:
    found = SIZE.fullmatch(text.strip())
    if not found:
        raise ValueError(f"not a size: {text}")
    return int(found[1]) * UNITS[found[2].lower()]


def items(lines: Iterable[str]) -> Iterator[Item]:
    for line in lines:
        if line.strip():
            name, size = line.rsplit(maxsplit=1)
            yield Item(name, size_of(size))


def batches(given: Iterable[Item], files: int, limit: int, report: Report) -> Iterator[list[Item]]:
    """As many in a row as fit, one batch after the other."""
    batch: list[Item] = []
    size = 0
    for item in given:
        if item.size > limit:
            report.too_large.append(item.name)
            continue
        if batch and (len(batch) == files or size + item.size > limit):
            yield batch
            batch = [item]
            size = item.size
        else:
            batch.append(item)
            size += item.size
    if batch:
        yield batch


def run(input: Input) -> Output:
    report = Report()
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    groups = [
        Group(names=[item.name for item in batch], bytes=sum(item.size for item in batch))
        for batch in batches(items(lines), input.files, size_of(input.limit), report)
    ]
    return Output(batches=groups, too_large=report.too_large)
