"""Hours by calendar week."""

import csv
from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "week_hours",
    "description": "Hours of a time sheet for each calendar week and project",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="date;project;hours with a comma in the hours")


class Output(BaseModel):
    weeks: dict[str, float]
    projects: dict[str, float]
    fullest: str | None


def week_of(day: date) -> str:
    """The week by ISO 8601, such as 2026-W07."""
    year, week, _ = day.isocalendar()
    return f"{year}-W{week:02d}"


def run(input: Input) -> Output:
    weeks: dict[str, float] = {}
    projects: dict[str, float] = {}
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle, delimiter=";"):
            hours = float(row["hours"].replace(",", "."))
            week = week_of(date.fromisoformat(row["date"]))
            weeks[week] = weeks.get(week, 0) + hours
            projects[row["project"]] = projects.get(row["project"], 0) + hours
    fullest = max(sorted(weeks), key=lambda week: weeks[week], default=None)
    return Output(
        weeks=dict(sorted(weeks.items())),
        projects=dict(sorted(projects.items())),
        fullest=fullest,
    )
