"""Compares two files line by line."""

from itertools import zip_longest
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "line_compare",
    "description": "Two files compared line by line: the numbers (from 1) of the lines that differ, spaces at their ends aside, where a line that only one file has differs too; how many are equal; and whether the files are the same in this sense",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    old: str
    new: str


class Output(BaseModel):
    different: list[int]
    equal: int
    same: bool


def lines(path: str) -> list[str]:
    return [line.rstrip() for line in Path(path).read_text(encoding="utf-8").splitlines()]


def run(input: Input) -> Output:
    different = []
    equal = 0
    pairs = zip_longest(lines(input.old), lines(input.new))
    for number, (before, after) in enumerate(pairs, start=1):
        if before == after:
            equal += 1
        else:
            different.append(number)
    return Output(different=different, equal=equal, same=not different)
