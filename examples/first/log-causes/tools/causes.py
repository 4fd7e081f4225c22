"""Counts what went wrong in logs."""

from collections import Counter
from pathlib import Path

from pydantic import BaseModel

TOOL = {"name": "causes", "description": "The most frequent errors of a folder of logs", "effects": ["read"]}


class Input(BaseModel):
    folder: str
    most: int = 5


class Output(BaseModel):
    errors: int
    causes: list[str]  # the most frequent first


def run(input: Input) -> Output:
    counts: Counter[str] = Counter()
    for path in sorted(Path(input.folder).rglob("*.log")):
        for line in path.read_text().splitlines():
            _, _, level, message = line.split(" ", 3)
            if level == "ERROR":
                counts[message] += 1
    causes = sorted(counts, key=lambda cause: counts[cause])
    return Output(errors=counts.total(), causes=causes[: input.most])
