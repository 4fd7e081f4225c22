"""Desks of an office."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "desk_plan",
    "description": "Who has which desk on which day of a week, from wishes in the order in which they came (a desk, the first and the last day); names the wishes that do not fit, and the desks free on each day",
    "effects": ["read"],
    "dependencies": [],
}

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri")


class Input(BaseModel):
    path: str
    desks: int


class Output(BaseModel):
    plan: list[list[str]]
    refused: list[str]
    free: dict[str, int]


def run(input: Input) -> Output:
    """Lines: name, desk (from 1), first day, and a last one where there are several. A desk of 0 means the first that is free."""
    plan = [[""] * len(DAYS)] * input.desks
    refused = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        name, desk, first, *last = line.split()
        days = range(DAYS.index(first), DAYS.index(last[0] if last else first) + 1)
        wanted = range(input.desks) if desk == "0" else [int(desk) - 1]
        for row in wanted:
            if row < input.desks and not any(plan[row][day] for day in days):
                for day in days:
                    plan[row][day] = name
                break
        else:
            refused.append(name)
    free = {name: sum(row[day] == "" for row in plan) for day, name in enumerate(DAYS)}
    return Output(plan=plan, refused=refused, free=free)
