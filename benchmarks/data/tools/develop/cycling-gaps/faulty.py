"""Gaps to the winner of a stage."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "cycling_gaps",
    "description": "Gaps to the fastest of a stage, such as +0:07 or +11:40; time bonuses in seconds are taken off first; the same time is written s.t. and names are put in order of time and then as given",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    results: list[str] = Field(description="Name H:MM:SS")
    bonus: dict[str, int] = Field(default_factory=dict)


class Output(BaseModel):
    gaps: dict[str, str]
    winner: str | None


def seconds(clock: str) -> int:
    total = 0
    for part in clock.split(":"):
        total = total * 60 + int(part)
    return total


def gap(behind: int) -> str:
    if behind == 0:
        return "s.t."
    return f"+0:{behind:02d}"


def run(input: Input) -> Output:
    times = {}
    for line in input.results:
        name, clock = line.rsplit(" ", 1)
        times[name] = seconds(clock) - input.bonus.get(name, 0)
    order = sorted(times, key=times.__getitem__)
    if not order:
        return Output(gaps={}, winner=None)
    best = times[order[0]]
    return Output(gaps={name: gap(times[name] - best) for name in order[1:]}, winner=order[0])
