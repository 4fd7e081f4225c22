"""Reads a price sheet with merged cells."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "price_sheet",
    "description": "The articles of each group of a sheet in which a group's name stands in its first row only, the rows below being blank there; the cheapest article of each group, and how many articles there are",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="A line of headings, and lines of the form: group;article;price")


class Output(BaseModel):
    groups: dict[str, list[str]]
    cheapest: dict[str, str]
    count: int


def run(input: Input) -> Output:
    """A group may come again further down; of articles of one price the first is the cheapest."""
    groups: dict[str, list[str]] = {}
    cheapest: dict[str, tuple[float, str]] = {}
    count = 0
    current = ""
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    for line in lines[1:]:
        if not line.strip(" ;"):
            continue
        group, article, price = (cell.strip() for cell in line.split(";"))
        if group:
            current = group
        groups.setdefault(current, []).append(article)
        if current not in cheapest or float(price) < cheapest[current][0]:
            cheapest[current] = (float(price), article)
        count += 1
    return Output(
        groups=groups,
        cheapest={group: article for group, (_, article) in cheapest.items()},
        count=count,
    )
