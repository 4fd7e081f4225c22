"""Jobs of a build."""

import itertools
import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "build_matrix",
    "description": "The jobs of a build matrix: all combinations of its axes without those that a rule excludes, and what is included besides",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(
        description="JSON with axes, exclude and include; a rule that names some axes goes for all jobs with these"
    )


class Output(BaseModel):
    jobs: list[dict[str, str]]
    excluded: int


def excludes(rule: dict[str, str], job: dict[str, str]) -> bool:
    return all(job.get(axis) == value for axis, value in rule.items())


def run(input: Input) -> Output:
    matrix = json.loads(Path(input.path).read_text(encoding="utf-8"))
    axes = matrix["axes"]
    jobs: list[dict[str, str]] = []
    excluded = 0
    for values in itertools.product(*axes.values()):
        job = dict(zip(axes, values, strict=True))
        if any(excludes(rule, job) for rule in matrix.get("exclude", [])):
            excluded += 1
        else:
            jobs.append(job)
    jobs.extend(matrix.get("include", []))
    return Output(jobs=jobs, excluded=excluded)
