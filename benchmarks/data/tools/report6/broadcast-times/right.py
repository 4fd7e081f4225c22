"""A daily programme in universal time."""

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from pydantic import BaseModel, Field

TOOL = {
    "name": "broadcast_times",
    "description": "Times in UTC of a programme that is sent on some days in a row at the same local time, and the numbers of the days (from 1) on which the time in UTC is another than the day before",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    zone: str
    first: datetime = Field(description="local, without an offset")
    days: int = Field(ge=0, le=60)


class Output(BaseModel):
    utc: list[str]
    changes: list[int]


def in_utc(local: datetime, zone: ZoneInfo) -> datetime:
    return local.replace(tzinfo=zone).astimezone(timezone.utc)


def run(input: Input) -> Output:
    zone = ZoneInfo(input.zone)
    moments = []
    for number in range(input.days):
        local = input.first + timedelta(days=number)
        moments.append(in_utc(local, zone))
    changes = []
    for number, (before, after) in enumerate(zip(moments, moments[1:]), start=2):
        if (before.hour, before.minute) != (after.hour, after.minute):
            changes.append(number)
    return Output(utc=[moment.strftime("%Y-%m-%d %H:%M") for moment in moments], changes=changes)
