"""Reports the time that projects took."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "worklog_report",
    "description": "The minutes that each project took by a worklog of durations such as 1d 2h 30m (a day is a working day), as a report of one line each with the longest project first, and the minutes of all",
    "effects": ["read"],
    "dependencies": [],
}
UNITS = {"h": 60, "m": 1}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: project: duration")
    hours_per_day: int = Field(8, ge=1, le=24)


class Output(BaseModel):
    minutes: dict[str, int]
    report: list[str]
    total: int


def minutes(text: str, hours_per_day: int) -> int:
    units = {**UNITS, "d": hours_per_day * 60}
    return sum(int(part[:-1]) * units[part[-1]] for part in text.split())


def run(input: Input) -> Output:
    """Projects of the same length by name."""
    found: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        project, duration = line.rsplit(":", 1)
        project = project.strip()
        found[project] = found.get(project, 0) + minutes(duration, input.hours_per_day)
    order = sorted(found, key=lambda project: (-found[project], project))
    report = [f"{project}: {found[project] // 60}:{found[project] % 60:02}" for project in order]
    return Output(minutes=found, report=report, total=sum(found.values()))
