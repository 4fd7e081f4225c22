"""States of the jobs of a build, from the events of its runner."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "ci_jobs",
    "description": "Last state, attempts and seconds of the last attempt of each job, from lines: SECONDS JOB EVENT (queue, start, pass, fail, retry, cancel)",
    "effects": ["read"],
    "dependencies": [],
}

MOVES = {
    ("new", "queue"): "queued",
    ("queued", "start"): "running",
    ("running", "pass"): "passed",
    ("running", "fail"): "failed",
    ("failed", "retry"): "queued",
    ("queued", "cancel"): "cancelled",
    ("running", "cancel"): "cancelled",
}


class Input(BaseModel):
    path: str = Field(description="One event a line, in the order of time")


class State(BaseModel):
    state: str
    attempts: int
    seconds: int


class Output(BaseModel):
    jobs: dict[str, State]
    ignored: list[str]


@dataclass
class Job:
    """One job, as far as the events have come."""

    state: str = "new"
    attempts: int = 0
    started: int | None = None
    ended: int | None = None

    def take(self, at: int, event: str) -> bool:
        """Whether the event may come now; if so, the job is in its next state."""
        state = MOVES.get((self.state, event))
        if state is None:
            return False
        self.state = state
        if event == "start":
            self.attempts += 1
            if self.started is None:
                self.started = at
        elif event == "retry":
            self.ended = None
        elif state in ("passed", "failed", "cancelled"):
            self.ended = at
        return True

    def seconds(self) -> int:
        if self.started is None or self.ended is None:
            return 0
        return self.ended - self.started


def run(input: Input) -> Output:
    jobs: dict[str, Job] = {}
    ignored = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        at, name, event = line.split()
        if not jobs.setdefault(name, Job()).take(int(at), event):
            ignored.append(f"{name} {event}")
    states = {
        name: State(state=job.state, attempts=job.attempts, seconds=job.seconds()) for name, job in jobs.items()
    }
    return Output(jobs=states, ignored=ignored)
