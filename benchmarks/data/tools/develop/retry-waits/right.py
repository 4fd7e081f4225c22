"""Waits between tries."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "retry_waits",
    "description": "The waits between the tries of a request, which double up to a limit, and when each try begins",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    first: int = Field(description="Milliseconds of the first wait", gt=0)
    limit: int = Field(description="No wait is longer")
    tries: int = Field(ge=1)
    budget: int | None = Field(None, description="Milliseconds after which no try begins any more")
    took: int = Field(0, description="Milliseconds that each try takes")


class Output(BaseModel):
    waits: list[int]
    begins: list[int]
    given_up: bool = Field(description="Whether the budget ended the tries")


def next_wait(wait: int, limit: int) -> int:
    return min(wait * 2, limit)


def run(input: Input) -> Output:
    waits: list[int] = []
    begins = [0]
    wait = min(input.first, input.limit)
    given_up = False
    while len(begins) < input.tries:
        begin = begins[-1] + input.took + wait
        if input.budget is not None and begin > input.budget:
            given_up = True
            break
        waits.append(wait)
        begins.append(begin)
        wait = next_wait(wait, input.limit)
    return Output(waits=waits, begins=begins, given_up=given_up)
