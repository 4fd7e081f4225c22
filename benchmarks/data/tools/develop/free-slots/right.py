"""Free times of a day."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "free_slots",
    "description": "The free times between opening and closing around bookings, which may overlap or lie within each other, that last at least so many minutes; and the free minutes of them in sum",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    opens: str
    closes: str
    bookings: list[tuple[str, str]]
    least: int = Field(30, ge=1, description="Minutes")


class Output(BaseModel):
    free: list[tuple[str, str]]
    minutes: int


def minutes(clock: str) -> int:
    hours, rest = clock.split(":")
    return int(hours) * 60 + int(rest)


def clock(moment: int) -> str:
    return f"{moment // 60:02d}:{moment % 60:02d}"


def run(input: Input) -> Output:
    closes = minutes(input.closes)
    free_from = minutes(input.opens)
    gaps = []
    for start, end in sorted((minutes(start), minutes(end)) for start, end in input.bookings):
        until = min(start, closes)
        if until - free_from >= input.least:
            gaps.append((free_from, until))
        free_from = max(free_from, end)
    if closes - free_from >= input.least:
        gaps.append((free_from, closes))
    return Output(
        free=[(clock(start), clock(end)) for start, end in gaps],
        minutes=sum(end - start for start, end in gaps),
    )
