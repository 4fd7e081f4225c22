"""Checks the brackets of a text."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "bracket_check",
    "description": "The first bracket of a text that does not fit, as line and column from 1: a closing one that none or another kind is open for, or else, at the end of the text, the last that was left open; and how deep brackets lie in each other at most up to there",
    "effects": ["read"],
    "dependencies": [],
}

PAIRS = {")": "(", "]": "[", "}": "{"}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    fits: bool
    line: int | None = None
    column: int | None = None
    deepest: int = 0


def run(input: Input) -> Output:
    stack: list[tuple[str, int, int]] = []
    deepest = 0
    for number, line in enumerate(Path(input.path).read_text(encoding="utf-8").splitlines(), start=1):
        for column, sign in enumerate(line, start=1):
            if sign in PAIRS.values():
                stack.append((sign, number, column))
                deepest = max(deepest, len(stack))
            elif sign in PAIRS:
                if stack[-1][0] != PAIRS[sign]:
                    return Output(fits=False, line=number, column=column, deepest=deepest)
                stack.pop()
    if stack:
        _, number, column = stack[-1]
        return Output(fits=False, line=number, column=column, deepest=deepest)
    return Output(fits=True, deepest=deepest)
