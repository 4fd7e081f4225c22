"""Points of a quiz with streaks."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "quiz_streak",
    "description": "Points of a quiz in which the third right answer in a row, and each right one after it, count double",
    "effects": ["read"],
    "dependencies": [],
}

STREAK = 3


class Input(BaseModel):
    key: str = Field(description="The right answers, one letter each")
    path: str = Field(description="Lines: player answers; a hyphen is a question that was skipped")
    right: int = 10
    wrong: int = Field(-5, description="Points for a wrong answer")


class Score(BaseModel):
    player: str
    points: int
    best_streak: int


class Output(BaseModel):
    scores: list[Score] = Field(description="The most points first, equal ones by name")


def run(input: Input) -> Output:
    scores = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        player, answers = line.rsplit(None, 1)
        points = streak = best = 0
        for answer, right in zip(answers.upper(), input.key.upper()):
            if answer == right:
                streak += 1
                points += input.right * (2 if streak >= STREAK else 1)
            elif answer != "-":
                streak = 0
                points += input.wrong
            best = max(best, streak)
        scores.append(Score(player=player, points=points, best_streak=best))
    scores.sort(key=lambda score: (-score.points, score.player))
    return Output(scores=scores)
