"""Plans the day of a hair salon."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "salon_bookings",
    "description": "The bookings of a day with their beginnings and ends, the beginnings of those that begin before the one above them ends, and the minutes of work of all; a booking without minutes takes what is usual for its service, or a given time for other services",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: 09:30;service;minutes, by time of day; minutes may be empty")
    usual: dict[str, int] = Field({}, description="Usual minutes of services")
    other: int = Field(30, description="Minutes of a service that has no usual ones")


class Booking(BaseModel):
    start: int
    service: str
    minutes: int


class Output(BaseModel):
    plan: list[str]
    clashes: list[str]
    minutes: int


def read(path: str) -> list[Booking]:
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            time, service, minutes = (part.strip() for part in line.split(";"))
            hour, minute = time.split(":")
            start = int(hour) * 60 + int(minute)
            found.append(Booking(start=start, service=service, minutes=int(minutes or 0)))
    return found


def fill(bookings: list[Booking], usual: dict[str, int], other: int) -> None:
    for booking in bookings:
        if not booking.minutes:
            booking.minutes = usual.get(booking.service, other)


def clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def arrange(bookings: list[Booking]) -> tuple[list[str], list[str]]:
    plan, clashes = [], []
    free = 0
    for booking in bookings:
        end = booking.start + booking.minutes
        plan.append(f"{clock(booking.start)}-{clock(end)} {booking.service}")
        if booking.start < free:
            clashes.append(clock(booking.start))
        free = end
    return plan, clashes


def run(input: Input) -> Output:
    bookings = read(input.path)
    fill(bookings, input.usual, input.other)
    plan, clashes = arrange(bookings)
    return Output(plan=plan, clashes=clashes, minutes=sum(booking.minutes for booking in bookings))
