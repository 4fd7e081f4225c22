"""Sums up the visitors of a museum."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "museum_visitors",
    "description": "How many visitors came in all and on a day on which the museum was open (with one decimal; none where it never was), the day with the most (the first of several), the days on which it was closed, and those with more visitors than it is meant for",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: day;visitors, such as: 2024-05-01;1,204, or: 2024-05-02;closed")
    full: int = Field(800, description="The museum is meant for so many on a day")


class Output(BaseModel):
    total: int
    mean: float | None
    busiest: str | None
    closed: list[str]
    crowded: list[str]


def number(text: str) -> int:
    return int(text.replace(",", ""))


def run(input: Input) -> Output:
    visitors: dict[str, int] = {}
    closed = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        day, count = (part.strip() for part in line.split(";"))
        if count == "closed":
            closed.append(day)
        else:
            visitors[day] = number(count)
    total = sum(visitors.values())
    return Output(
        total=total,
        mean=round(total / len(visitors), 1) if visitors else None,
        busiest=max(visitors, key=visitors.__getitem__, default=None),
        closed=closed,
        crowded=[day for day, count in visitors.items() if count > input.full],
    )
