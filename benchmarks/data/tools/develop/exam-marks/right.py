"""Marks of a multiple choice exam."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "exam_marks",
    "description": "Marks of an exam: one point for the right choice (numbers from 0), a penalty for a wrong one, nothing for a question left out (null); never below 0 in all; and the questions (from 1) that nobody got right",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    key: list[int]
    answers: dict[str, list[int | None]]
    penalty: float = Field(0.25, ge=0)


class Output(BaseModel):
    marks: dict[str, float]
    left_out: dict[str, int]
    too_hard: list[int]


def mark(key: list[int], given: list[int | None], penalty: float) -> tuple[float, int]:
    total = 0.0
    blank = 0
    for right, choice in zip(key, given, strict=True):
        if choice is None:
            blank += 1
        elif choice == right:
            total += 1
        else:
            total -= penalty
    return max(total, 0.0), blank


def run(input: Input) -> Output:
    marks = {}
    left_out = {}
    for name, given in input.answers.items():
        marks[name], left_out[name] = mark(input.key, given, input.penalty)
    too_hard = [
        number
        for number, right in enumerate(input.key, start=1)
        if not any(given[number - 1] == right for given in input.answers.values())
    ]
    return Output(marks=marks, left_out=left_out, too_hard=too_hard)
