"""Sums up a test run."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "test_summary",
    "description": "Numbers of a test run by outcome and suite, pass rate of the tests that ran in percent, and slow tests",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="a line for each test: name, outcome and seconds, with tabs between them")
    slow_s: float = 5.0


class Output(BaseModel):
    outcomes: dict[str, int]
    broken_suites: list[str]
    rate: float | None
    slow: list[str]


def run(input: Input) -> Output:
    outcomes = {"pass": 0, "fail": 0, "error": 0, "skip": 0}
    broken = set()
    slow = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        name, outcome, seconds = line.split("\t")
        outcomes[outcome] += 1
        suite = name.split(".", 1)[0]
        if outcome in ("fail", "error"):
            broken.add(suite)
        if outcome != "skip" and float(seconds) > input.slow_s:
            slow.append((float(seconds), name))
    ran = sum(outcomes.values()) - outcomes["skip"]
    rate = round(100 * outcomes["pass"] / ran, 1) if ran else None
    slow.sort(reverse=True)
    return Output(outcomes=outcomes, broken_suites=sorted(broken), rate=rate, slow=[name for _, name in slow])
