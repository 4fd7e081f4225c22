"""The jobs that are done in an evening."""

import heapq
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "evening_jobs",
    "description": "Which jobs are done in an evening of so many minutes, the most urgent (1) first and those that are equally urgent in the order of the file; a job that no longer fits is left out, and a shorter one after it may still be done",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="One JSON object a line: name, urgency and minutes")
    minutes: int = Field(ge=0)


class Output(BaseModel):
    plan: list[str]
    left_out: list[str]
    spare: int


class Queue:
    """Jobs by their urgency."""

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, dict[str, Any]]] = []

    def put(self, job: dict[str, Any]) -> None:
        heapq.heappush(self.heap, (job["urgency"], len(self.heap), job))

    def jobs(self) -> Iterator[dict[str, Any]]:
        while self.heap:
            *_, job = heapq.heappop(self.heap)
            yield job


def run(input: Input) -> Output:
    queue = Queue()
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        queue.put(json.loads(line))
    clock = 0
    plan: list[str] = []
    left_out: list[str] = []
    for job in queue.jobs():
        if clock + job["minutes"] > input.minutes:
            left_out.append(job["name"])
            continue
        plan.append(f"{clock:3d} {job['name']}")
        clock += job["minutes"]
    return Output(plan=plan, left_out=left_out, spare=input.minutes - clock)
