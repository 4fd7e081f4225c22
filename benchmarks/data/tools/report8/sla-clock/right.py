"""Working minutes of tickets, by office hours."""

from datetime import date, datetime, time, timedelta
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "sla_clock",
    "description": "Working minutes from the opening to the closing of each ticket (lines: NAME OPENED CLOSED), Monday to Friday within office hours, and those beyond a limit",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines such as: T1 2026-03-02T08:30 2026-03-03T10:00")
    opens: str = "09:00"
    closes: str = "17:00"
    holidays: list[str] = []
    limit: int = Field(default=480, description="Minutes within which a ticket has to be closed")


class Output(BaseModel):
    minutes: dict[str, int]
    late: list[str]


class Office:
    """When somebody is there."""

    def __init__(self, opens: time, closes: time, holidays: set[date]) -> None:
        self.opens = opens
        self.closes = closes
        self.holidays = holidays

    def works(self, day: date) -> bool:
        return day.weekday() < 5 and day not in self.holidays

    def minutes_of(self, day: date, start: datetime, end: datetime) -> int:
        """Working minutes of one day that lie between the two times."""
        if not self.works(day):
            return 0
        begin = max(start, datetime.combine(day, self.opens))
        stop = min(end, datetime.combine(day, self.closes))
        return max(0, int((stop - begin).total_seconds() // 60))

    def between(self, start: datetime, end: datetime) -> int:
        total = 0
        day = start.date()
        while day <= end.date():
            total += self.minutes_of(day, start, end)
            day += timedelta(days=1)
        return total


def run(input: Input) -> Output:
    holidays = {date.fromisoformat(text) for text in input.holidays}
    office = Office(time.fromisoformat(input.opens), time.fromisoformat(input.closes), holidays)
    minutes: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        name, opened, closed = line.split()
        minutes[name] = office.between(datetime.fromisoformat(opened), datetime.fromisoformat(closed))
    late = [name for name, count in minutes.items() if count > input.limit]
    return Output(minutes=minutes, late=late)
