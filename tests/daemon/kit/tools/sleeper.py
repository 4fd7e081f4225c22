"""Sleeps so many seconds."""

import time

from pydantic import BaseModel

TOOL = {"name": "sleeper", "description": "Sleeps so many seconds.", "effects": ["pure"], "dependencies": []}


class Input(BaseModel):
    n: int = 0


class Output(BaseModel):
    n: int


def run(input: Input) -> Output:
    time.sleep(input.n)
    return Output(n=input.n)
