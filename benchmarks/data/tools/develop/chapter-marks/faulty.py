"""Chapter marks of an audiobook."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "chapter_marks",
    "description": "Start marks of the chapters of an audiobook, from their durations",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: duration (H:MM:SS, MM:SS or seconds) and title")
    gap: int = Field(0, description="Seconds of silence between two chapters")


class Output(BaseModel):
    marks: list[str]
    length: str


def seconds(text: str) -> int:
    total = 0
    for part in text.split(":"):
        total = total * 60 + int(part)
    return total


def mark(total: int) -> str:
    """MM:SS, or H:MM:SS from an hour on."""
    minutes, second = divmod(total, 60)
    return f"{minutes:02}:{second:02}"


def run(input: Input) -> Output:
    marks = []
    at = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        duration, title = line.strip().split(None, 1)
        if marks:
            at += input.gap
        marks.append(f"{mark(at)} {title}")
        at += seconds(duration)
    return Output(marks=marks, length=mark(at))
