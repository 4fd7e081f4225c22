"""Times at which a client tries a request again."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "retry_plan",
    "description": "Seconds at which each attempt starts, and how it ends (ok, refused, attempts, deadline), from the answers of a server: STATUS [retry-after SECONDS], one a line",
    "effects": ["read"],
    "dependencies": [],
}

AGAIN = {408, 425, 429, 500, 502, 503, 504}


class Input(BaseModel):
    path: str = Field(description="What the server answers to each attempt, at once")
    first: int = Field(default=1, ge=0, description="Seconds before the second attempt; they double each time")
    longest: int = Field(default=30, ge=1, description="No wait is longer, unless the server asks for it")
    attempts: int = Field(default=5, ge=1)
    deadline: int = Field(default=60, ge=0, description="No attempt starts later than so many seconds")


class Output(BaseModel):
    starts: list[int]
    end: str


def answers(text: str) -> Iterator[tuple[int, int | None]]:
    """Each answer's status, and how long it asks the client to wait."""
    for line in text.splitlines():
        words = line.split()
        if not words:
            continue
        asked = int(words[2]) if len(words) > 2 and words[1].lower() == "retry-after" else None
        yield int(words[0]), asked


def wait(input: Input, number: int, asked: int | None) -> int:
    """Seconds between this attempt, counted from 1, and the next one."""
    own = min(input.first * 2 ** (number - 1), input.longest)
    return own if asked is None else max(own, asked)


def run(input: Input) -> Output:
    now = 0
    starts: list[int] = []
    for status, asked in answers(Path(input.path).read_text(encoding="utf-8")):
        starts.append(now)
        if status < 400:
            return Output(starts=starts, end="ok")
        if status not in AGAIN:
            return Output(starts=starts, end="refused")
        if len(starts) >= input.attempts:
            return Output(starts=starts, end="attempts")
        now += wait(input, len(starts), asked)
        if now > input.deadline:
            return Output(starts=starts, end="deadline")
    return Output(starts=starts, end="unknown")
