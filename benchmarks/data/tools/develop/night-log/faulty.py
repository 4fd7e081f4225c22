"""Seconds since the beginning of a log."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "night_log",
    "description": "Seconds from the first line to every line of a machine's log, which has times but no dates",
    "effects": ["read"],
    "dependencies": [],
}

DAY = 24 * 60 * 60


class Input(BaseModel):
    path: str = Field(description="Lines of HH:MM:SS and an event, in the order they were written")
    pause: int = Field(600, description="Seconds without a line that are called a pause")


class Output(BaseModel):
    elapsed: list[int]
    pauses: list[str] = Field(description="Events after which there was a pause")
    total: str = Field(description="Time from the first to the last line, H:MM:SS")


def seconds(clock: str) -> int:
    hours, minutes, rest = (int(part) for part in clock.split(":"))
    return hours * 3600 + minutes * 60 + rest


def read(path: str) -> list[tuple[int, str]]:
    """Seconds and event of every line."""
    found: list[tuple[int, str]] = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            clock, _, event = line.strip().partition(" ")
            now = seconds(clock)
            found.append((now, event))
    return found


def run(input: Input) -> Output:
    lines = read(input.path)
    if not lines:
        return Output(elapsed=[], pauses=[], total="0:00:00")
    first = lines[0][0]
    elapsed = [now - first for now, _ in lines]
    gaps = [after - before for before, after in zip(elapsed, elapsed[1:], strict=False)]
    hours, rest = divmod(elapsed[-1], 3600)
    return Output(
        elapsed=elapsed,
        pauses=[lines[number][1] for number, gap in enumerate(gaps) if gap >= input.pause],
        total=f"{hours}:{rest // 60:02d}:{rest % 60:02d}",
    )
