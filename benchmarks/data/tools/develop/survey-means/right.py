"""Averages the answers of a survey."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "survey_means",
    "description": "The mean answer to each question of a survey, of those who answered it (null where nobody did), the question with the lowest mean, and who answered nothing",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="guest,question,... and a line for each guest; a question left out is blank or -")


class Output(BaseModel):
    means: dict[str, float | None]
    weakest: str
    silent: list[str]


def run(input: Input) -> Output:
    """Means have two digits after the point; of equal ones the first question is the weakest."""
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split(",")] for line in lines if line.strip()]
    questions = rows[0][1:] if rows else []
    sums = dict.fromkeys(questions, 0)
    numbers = dict.fromkeys(questions, 0)
    silent = []
    for guest, *answers in rows[1:]:
        if not any(answer not in ("", "-") for answer in answers):
            silent.append(guest)
        for question, answer in zip(questions, answers):
            if answer in ("", "-"):
                continue
            sums[question] += int(answer)
            numbers[question] += 1
    means = {
        question: round(sums[question] / numbers[question], 2) if numbers[question] else None
        for question in questions
    }
    known = {question: mean for question, mean in means.items() if mean is not None}
    weakest = min(known, key=lambda question: known[question], default="")
    return Output(means=means, weakest=weakest, silent=silent)
