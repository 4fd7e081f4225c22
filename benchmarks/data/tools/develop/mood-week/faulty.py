"""Moods by the day of the week."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "mood_week",
    "description": "The mean mood (1 to 10) on each day of the week from a diary, over all entries, and the best day; a day without entries has no mean",
    "effects": ["read"],
    "dependencies": [],
}

DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


class Input(BaseModel):
    path: str


class Output(BaseModel):
    means: dict[str, float | None]
    overall: float | None
    best: str | None


def mean(values: list[int]) -> float | None:
    return round(sum(values) / len(values), 2)


def run(input: Input) -> Output:
    """Lines: day, mood; a mood of - was forgotten and does not count. Of equal days the earlier is best."""
    moods: dict[str, list[int]] = {day: [] for day in DAYS}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        day, mood = (cell.strip() for cell in line.split(","))
        if mood != "-":
            moods[day.capitalize()].append(int(mood))
    means = {day: mean(values) for day, values in moods.items()}
    known = [day for day in DAYS if moods[day]]
    best = max(known, key=lambda day: sum(moods[day]) / len(moods[day]), default=None)
    return Output(means=means, overall=mean(sum(moods.values(), [])), best=best)
