"""The order of print jobs."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "print_queue",
    "description": "The order in which a printer takes the jobs that wait in the morning: high before normal before low, the older ones first; and how many sheets are printed before each",
    "effects": ["read"],
    "dependencies": [],
}

URGENCY = {"high": 2, "normal": 1, "low": 0}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    order: list[str]
    before: dict[str, int]
    by_urgency: dict[str, int]


def run(input: Input) -> Output:
    """Lines: time (HH:MM), urgency, job, sheets. Jobs of one time keep the order of the file."""
    jobs = []
    for number, line in enumerate(Path(input.path).read_text(encoding="utf-8").splitlines()):
        if line.strip():
            time, urgency, job, sheets = line.split()
            jobs.append((URGENCY[urgency.lower()], time, number, job, int(sheets)))
    jobs.sort(key=lambda job: (-job[0], job[1], job[2]))
    before = {}
    printed = 0
    for _, _, _, name, sheets in jobs:
        before[name] = printed
        printed += sheets
    by_urgency = {
        word: sum(job[4] for job in jobs if job[0] == level) for word, level in URGENCY.items()
    }
    return Output(order=[job[3] for job in jobs], before=before, by_urgency=by_urgency)
