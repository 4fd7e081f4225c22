"""Scores of questionnaires with reversed questions."""

from pydantic import BaseModel

TOOL = {
    "name": "survey_score",
    "description": "The score of a questionnaire: the sum of its answers on a scale from low to high, where reversed questions count the other way round (the lowest answer as the highest), and the share of the possible range in percent, one decimal",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    answers: dict[str, int]
    reversed: list[str] = []
    low: int = 1
    high: int = 5


class Output(BaseModel):
    score: int
    percent: float | None
    strongest: list[str]


def run(input: Input) -> Output:
    points: dict[str, int] = {}
    for question, answer in input.answers.items():
        if not input.low <= answer <= input.high:
            raise ValueError(f"{question}: {answer} is not between {input.low} and {input.high}")
        points[question] = input.low + input.high - answer if question in input.reversed else answer
    score = sum(points.values())
    least = input.low * len(points)
    span = (input.high - input.low) * len(points)
    top = max(points.values(), default=None)
    return Output(
        score=score,
        percent=round(100 * (score - least) / span, 1) if span else None,
        strongest=[question for question, value in points.items() if value == top],
    )
