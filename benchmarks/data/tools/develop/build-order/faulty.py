"""Order in which steps have to be done before a target."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "build_order",
    "description": "Steps needed for a target, in order",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="JSON: step to the list of steps it needs; steps without needs may be left out")
    target: str


class Output(BaseModel):
    order: list[str]
    direct: list[str]


class Plan:
    def __init__(self, needs: dict[str, list[str]]) -> None:
        self.needs = needs
        self.order: list[str] = []
        self.open: set[str] = set()

    def of(self, step: str) -> list[str]:
        return self.needs[step]

    def visit(self, step: str) -> None:
        """Everything a step needs comes before it, each once."""
        if step in self.order:
            return
        if step in self.open:
            raise ValueError(f"{step} needs itself")
        self.open.add(step)
        for need in sorted(self.of(step)):
            self.visit(need)
        self.order.append(step)


def run(input: Input) -> Output:
    plan = Plan(json.loads(Path(input.path).read_text(encoding="utf-8")))
    plan.visit(input.target)
    return Output(order=plan.order, direct=sorted(plan.of(input.target)))
