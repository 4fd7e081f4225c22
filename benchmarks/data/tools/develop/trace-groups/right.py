"""Groups the events of a log with the indented lines that belong to them."""

from collections import Counter
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "trace_groups",
    "description": "Events of one level in a log with their indented trace lines: how many, the deepest trace, and where they come from",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    level: str = "ERROR"


class Output(BaseModel):
    events: list[str]
    deepest: int
    places: dict[str, int]


def run(input: Input) -> Output:
    groups: list[list[str]] = []
    current: list[str] = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        if line[0].isspace():
            current.append(line.strip())
            continue
        if current:
            groups.append(current)
        current = [line]
    if current:
        groups.append(current)

    chosen = [group for group in groups if group[0].split()[1:2] == [input.level]]
    places = Counter(group[1].removeprefix("at ") for group in chosen if len(group) > 1)
    return Output(
        events=[group[0].split(maxsplit=2)[-1] for group in chosen],
        deepest=max((len(group) - 1 for group in chosen), default=0),
        places=dict(sorted(places.items())),
    )
