"""A daily programme in universal time."""

from datetime import date, datetime, timedelta

from pydantic import BaseModel, Field

TOOL = {
    "name": "broadcast_times",
    "description": "Times in UTC of a programme that is sent on some days in a row at the same local time: the clocks are some minutes ahead of UTC, from the days of the changes on so many as given there; and the numbers of the days (from 1) on which the time in UTC is another than the day before",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    first: datetime = Field(description="local")
    days: int = Field(ge=0, le=60)
    offset: int = Field(description="minutes ahead of UTC before any change")
    changes: dict[date, int] = Field(default_factory=dict, description="minutes ahead of UTC from a day on")


class Output(BaseModel):
    utc: list[str]
    changes: list[int]


class Clock:
    def __init__(self, offset: int, changes: dict[date, int]) -> None:
        self.offset = offset
        self.changes = sorted(changes.items())

    def ahead(self, day: date) -> timedelta:
        minutes = self.offset
        for since, then in self.changes:
            if since <= day:
                minutes = then
        return timedelta(minutes=minutes)


def run(input: Input) -> Output:
    clock = Clock(input.offset, input.changes)
    utc = []
    for number in range(input.days):
        local = input.first + timedelta(days=number)
        utc.append((local - clock.ahead(local.date())).strftime("%Y-%m-%d %H:%M"))
    changes = [
        number
        for number, (before, after) in enumerate(zip(utc, utc[1:]), start=2)
        if before[11:] != after[11:]
    ]
    return Output(utc=utc, changes=changes)
