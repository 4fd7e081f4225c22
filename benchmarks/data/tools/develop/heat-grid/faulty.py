"""Calls by day of the week and hour."""

from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "heat_grid",
    "description": "Busiest hours of the day and their calls, and calls outside opening hours, from a list of calls",
    "effects": ["read"],
    "dependencies": [],
}

DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


class Input(BaseModel):
    path: str = Field(description="Lines that begin with YYYY-MM-DD HH:MM")
    opens: int = 8
    closes: int = 18


class Output(BaseModel):
    busiest: int = Field(description="The most calls that any hour of any day of the week had")
    hours: list[int] = Field(description="Hours of the day in which a day of the week had so many")
    outside: int


def grid_of(stamps: list[datetime]) -> list[list[int]]:
    """Calls of each hour, in a row for each day of the week."""
    grid = [[0] * 24] * len(DAYS)
    for stamp in stamps:
        grid[stamp.weekday()][stamp.hour] += 1
    return grid


def run(input: Input) -> Output:
    stamps = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            stamps.append(datetime.strptime(line[:16], "%Y-%m-%d %H:%M"))
    grid = grid_of(stamps)
    busiest = max(max(row) for row in grid)
    hours = {hour for row in grid for hour, calls in enumerate(row) if calls == busiest and calls > 0}
    outside = sum(not input.opens <= stamp.hour < input.closes for stamp in stamps)
    return Output(busiest=busiest, hours=sorted(hours), outside=outside)
