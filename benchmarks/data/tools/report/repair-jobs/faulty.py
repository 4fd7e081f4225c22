"""Jobs of a repair shop that are due."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "repair_jobs",
    "description": "The open jobs of a workshop that are due, by how many days they have waited, the longest first and then by number: those of high priority and those that have waited for a given number of days; the number of open jobs by priority, and the days that all due ones have waited",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: number;high, normal or low;days;open, waiting or done")
    late: int = Field(10, ge=0, description="Days of waiting after which a job is due")


class Job(BaseModel):
    number: str
    priority: str
    days: int
    state: str


class Output(BaseModel):
    due: list[str]
    open: dict[str, int]
    days: int


def jobs(path: str) -> list[Job]:
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            number, priority, days, state = (part.strip() for part in line.split(";"))
            found.append(Job(number=number, priority=priority, days=int(days), state=state))
    return found


def is_due(job: Job, late: int) -> bool:
    return job.priority == "high" or job.days >= late and job.state == "open"


def run(input: Input) -> Output:
    everything = jobs(input.path)
    due = [job for job in everything if is_due(job, input.late)]
    due.sort(key=lambda job: (-job.days, job.number))
    by_priority: dict[str, int] = {}
    for job in everything:
        if job.state == "open":
            by_priority[job.priority] = by_priority.get(job.priority, 0) + 1
    return Output(
        due=[job.number for job in due],
        open=by_priority,
        days=sum(job.days for job in due),
    )
