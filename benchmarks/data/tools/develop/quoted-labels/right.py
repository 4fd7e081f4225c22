"""Labels that a manual puts in quotes."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "quoted_labels",
    "description": "All that stands between straight double quotes in a text, from each opening one to the next on the same line, in order and without doubles; and the lines (from 1) with a quote that is not closed",
    "effects": ["read"],
    "dependencies": [],
}

QUOTED = re.compile(r'"(.*?)"')


class Input(BaseModel):
    path: str


class Output(BaseModel):
    labels: list[str]
    count: int
    unclosed: list[int]


def run(input: Input) -> Output:
    labels: list[str] = []
    count = 0
    unclosed = []
    for number, line in enumerate(Path(input.path).read_text(encoding="utf-8").splitlines(), start=1):
        for label in QUOTED.findall(line):
            count += 1
            if label not in labels:
                labels.append(label)
        if line.count('"') % 2:
            unclosed.append(number)
    return Output(labels=labels, count=count, unclosed=unclosed)
