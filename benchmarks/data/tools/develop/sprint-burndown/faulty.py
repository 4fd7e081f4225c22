"""Burndown of a sprint."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "sprint_burndown",
    "description": "Points left at the end of each day of a sprint, from the events of its stories",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: day event story [points]; events are add, done, reopen and drop, in order")
    days: int = Field(5, ge=1)


class Output(BaseModel):
    left: list[int] = Field(description="At the end of day 1, 2, ...")
    open: list[str]


def run(input: Input) -> Output:
    todo: dict[str, int] = {}
    left = [0] * input.days
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        day, event, story, *rest = line.split()
        if event == "add":
            todo[story] = int(rest[0])
        elif event == "done":
            todo.pop(story, None)
        for place in range(int(day) - 1, input.days):
            left[place] = sum(todo.values())
    return Output(left=left, open=sorted(todo))
