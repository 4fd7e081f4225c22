"""Latencies in a log, written as 12ms, 1.5s or 800us."""

import re
from pathlib import Path
from statistics import median

from pydantic import BaseModel, Field

TOOL = {
    "name": "latency_report",
    "description": "Median and slow requests of a log",
    "effects": ["read"],
    "dependencies": [],
}

ENTRY = re.compile(r"^(\w+) (\S+) (\d+(?:\.\d+)?)(ms|us|s)$")
IN_MS = {"us": 0.001, "ms": 1, "s": 1000}


class Input(BaseModel):
    path: str
    slow_ms: float = Field(500, description="A request that takes longer is slow")


class Output(BaseModel):
    median_ms: float
    worst_ms: float
    slow: dict[str, int]


def entries(path: str) -> list[tuple[str, float]]:
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        match = ENTRY.match(line.strip())
        if match:
            _method, target, number, unit = match.groups()
            found.append((target, float(number) * IN_MS[unit]))
    return found


def run(input: Input) -> Output:
    rows = entries(input.path)
    if not rows:
        raise ValueError("the log holds no request")
    slow: dict[str, int] = {}
    for target, ms in rows:
        if ms > input.slow_ms:
            slow[target] = slow.get(target, 0) + 1
    values = [ms for _, ms in rows]
    return Output(median_ms=round(median(values), 3), worst_ms=round(max(values), 3), slow=slow)
