"""Scorers of a tournament."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "top_scorers",
    "description": "The first so many scorers: by goals, the most first, those with equal goals by name from A to Z; how many goals they share of all in percent, one decimal; who has no goal is left out",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    goals: dict[str, int]
    count: int = Field(3, ge=1)


class Scorer(BaseModel):
    name: str
    goals: int


class Output(BaseModel):
    scorers: list[Scorer]
    share: float | None


def run(input: Input) -> Output:
    for name, goals in input.goals.items():
        if goals < 0:
            raise ValueError(f"{name} cannot have {goals} goals")
    scored = [(name, goals) for name, goals in input.goals.items() if goals]
    scored.sort(key=lambda entry: (-entry[1], entry[0]))
    first = scored[: input.count]
    every = sum(input.goals.values())
    return Output(
        scorers=[Scorer(name=name, goals=goals) for name, goals in first],
        share=round(100 * sum(goals for _, goals in first) / every, 1) if every else None,
    )
