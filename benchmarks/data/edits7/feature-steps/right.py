"""Steps of a feature."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "feature_steps",
    "description": "The steps of each scenario of a feature file, those of the background before its own",
    "effects": ["read"],
    "dependencies": [],
}


KEYWORDS = ("Given", "When", "Then", "And", "But")


class Input(BaseModel):
    path: str = Field(description="A feature in Gherkin")


class Output(BaseModel):
    scenarios: dict[str, list[str]]
    steps: int


def run(input: Input) -> Output:
    background: list[str] = []
    scenarios: dict[str, list[str]] = {}
    steps = background
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        head, colon, title = line.partition(":")
        if colon and head in ("Feature", "Background"):
            steps = background
        elif colon and head in ("Scenario", "Example"):
            steps = scenarios[title.strip()] = list(background)
        else:
            keyword, _, text = line.partition(" ")
            if keyword in KEYWORDS:
                steps.append(text.strip())
    return Output(scenarios=scenarios, steps=sum(map(len, scenarios.values())))
