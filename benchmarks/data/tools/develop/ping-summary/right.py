"""Summary of pings."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "ping_summary",
    "description": "Loss and times of the pings to hosts, from a log",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: host milliseconds, with * where no answer came")
    slow: float = Field(100.0, description="Hosts with a mean above this are slow")


class Host(BaseModel):
    sent: int
    loss: float = Field(description="Percent")
    mean: float | None
    jitter: float | None = Field(description="Mean difference of two answers in a row")


class Output(BaseModel):
    hosts: dict[str, Host]
    slow: list[str]


def mean(values: list[float]) -> float | None:
    return round(sum(values) / len(values), 1) if values else None


def run(input: Input) -> Output:
    pings: dict[str, list[float | None]] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            host, time = line.split()
            pings.setdefault(host, []).append(None if time == "*" else float(time))
    hosts: dict[str, Host] = {}
    for host, times in pings.items():
        answers = [time for time in times if time is not None]
        steps = [abs(after - before) for before, after in zip(answers, answers[1:])]
        loss = round(100 * (len(times) - len(answers)) / len(times), 1)
        hosts[host] = Host(sent=len(times), loss=loss, mean=mean(answers), jitter=mean(steps) if steps else None)
    slow = [host for host, found in hosts.items() if found.mean is not None and found.mean > input.slow]
    return Output(hosts=hosts, slow=sorted(slow))
