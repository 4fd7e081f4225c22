"""Ratings of courses."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "course_ratings",
    "description": "Mean rating of courses, best first; a course that nobody has rated is listed last, with no mean",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with the columns course and stars, which may be empty")
    courses: list[str]
    digits: int = 1


class Rating(BaseModel):
    course: str
    mean: float | None
    votes: int


class Output(BaseModel):
    ratings: list[Rating]


def votes(path: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["stars"]:
                found.setdefault(row["course"], []).append(int(row["stars"]))
    return found


def mean(stars: list[int], digits: int) -> float | None:
    return round(sum(stars) / len(stars), digits)


def run(input: Input) -> Output:
    found = votes(Path(input.path))
    ratings = []
    for course in input.courses:
        stars = found.get(course, [])
        ratings.append(Rating(course=course, mean=mean(stars, input.digits), votes=len(stars)))
    ratings.sort(key=lambda each: (-(each.mean or 0), each.course))
    return Output(ratings=ratings)
