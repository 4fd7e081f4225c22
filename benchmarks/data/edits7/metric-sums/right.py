"""Sums of metrics."""

import re
from collections import defaultdict
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "metric_sums",
    "description": "The sum of a metric by one of its labels, from the text that a service exposes",
    "effects": ["read"],
    "dependencies": [],
}


SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Input(BaseModel):
    path: str = Field(description='Lines such as hits{code="200",path="/a"} 12; a # begins a comment')
    metric: str
    label: str


class Output(BaseModel):
    sums: dict[str, float]
    samples: int


def labels_of(text: str) -> dict[str, str]:
    """The labels of a sample, their values as they are written."""
    return dict(LABEL.findall(text))


def run(input: Input) -> Output:
    sums: defaultdict[str, float] = defaultdict(float)
    samples = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        match = SAMPLE.match(line.strip())
        if line.startswith("#") or not match or match[1] != input.metric:
            continue
        labels = labels_of(match[2] or "")
        sums[labels.get(input.label, "")] += float(match[3])
        samples += 1
    return Output(sums=dict(sorted(sums.items())), samples=samples)
