"""Grades of a course: a missed test counts as zero points."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "course_grades",
    "description": "Average and letter of each student",
    "effects": ["read"],
    "dependencies": [],
}

LETTERS = [(90, "A"), (80, "B"), (70, "C"), (60, "D")]


class Input(BaseModel):
    path: str = Field(description="JSON: student to list of points (null: missed, counts as 0)")
    drop_lowest: bool = False


class Output(BaseModel):
    averages: dict[str, float]
    letters: dict[str, str]


def letter(average: float) -> str:
    for least, name in LETTERS:
        if average >= least:
            return name
    return "F"


def run(input: Input) -> Output:
    averages = {}
    for student, points in json.loads(Path(input.path).read_text(encoding="utf-8")).items():
        points = [p or 0 for p in points]
        if input.drop_lowest and len(points) > 1:
            points = sorted(points)[1:]
        averages[student] = round(sum(points) / len(points), 1)
    return Output(averages=averages, letters={s: letter(a) for s, a in averages.items()})
