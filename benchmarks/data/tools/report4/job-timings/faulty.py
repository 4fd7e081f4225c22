"""Timings of jobs."""

from pathlib import Path

from _spans import seconds
from pydantic import BaseModel, Field

TOOL = {
    "name": "job_timings",
    "description": "How long the jobs of a build log took, in seconds, and the slowest one",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form job state time, the time such as 800ms, 12s, 3m or 3m12s")
    failed: bool = Field(False, description="Failed jobs count as well")


class Output(BaseModel):
    jobs: dict[str, float]
    slowest: str
    total: float


def run(input: Input) -> Output:
    jobs: dict[str, float] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        job, state, time = line.split()
        if state == "failed" and not input.failed:
            continue
        jobs[job] = round(jobs.get(job, 0.0) + seconds(time), 3)
    slowest = max(jobs, key=lambda job: jobs[job], default="")
    return Output(jobs=jobs, slowest=slowest, total=round(sum(jobs.values()), 3))
