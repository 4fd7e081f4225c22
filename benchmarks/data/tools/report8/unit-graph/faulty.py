"""Conversions between units, over definitions that lead from one to another."""

import re
from collections import deque
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "unit_graph",
    "description": "Converts amounts such as '3.5 miles to inches' by definitions such as '1 mile = 1760 yards', also over several of them",
    "effects": ["read"],
    "dependencies": [],
}

DEFINITION = re.compile(r"\s*([\d.]+)\s+(\w+)\s*=\s*([\d.]+)\s+(\w+)\s*")
QUESTION = re.compile(r"\s*(-?[\d.]+)\s+(\w+)\s+(?:to|in)\s+(\w+)\s*")

Graph = dict[str, dict[str, float]]


class Input(BaseModel):
    path: str = Field(description="One definition a line")
    questions: list[str]
    digits: int = Field(default=4, ge=0, le=9, description="Decimals of an answer")


class Output(BaseModel):
    answers: list[float | None] = Field(description="None where no definitions lead there")
    units: list[str]


def singular(unit: str) -> str:
    """The unit's name in the table: inches, miles and feet become inch, mile and foot."""
    unit = unit.lower()
    if unit == "feet":
        return "foot"
    if unit.endswith(("ches", "shes")):
        return unit[:-2]
    return unit[:-1] if unit.endswith("s") and len(unit) > 2 else unit


def read(text: str) -> Graph:
    graph: Graph = {}
    for line in text.splitlines():
        found = DEFINITION.fullmatch(line)
        if not found:
            continue
        one, other = singular(found[2]), singular(found[4])
        ratio = float(found[3]) / float(found[1])
        graph.setdefault(one, {})[other] = ratio
        graph.setdefault(other, {})[one] = 1 / ratio
    return graph


def factor(graph: Graph, start: str, goal: str) -> float | None:
    """How many of the goal are one of the start."""
    if start not in graph or goal not in graph:
        return None
    factors = {start: 1.0}
    queue = deque([start])
    while queue:
        unit = queue.popleft()
        if unit == goal:
            return factors[unit]
        for other, ratio in graph[unit].items():
            if other not in factors:
                factors[other] = ratio
                queue.append(other)
    return None


def run(input: Input) -> Output:
    graph = read(Path(input.path).read_text(encoding="utf-8"))
    answers: list[float | None] = []
    for question in input.questions:
        found = QUESTION.fullmatch(question)
        if not found:
            raise ValueError(f"not a question: {question}")
        ratio = factor(graph, singular(found[2]), singular(found[3]))
        answers.append(None if ratio is None else round(float(found[1]) * ratio, input.digits))
    return Output(answers=answers, units=sorted(graph))
