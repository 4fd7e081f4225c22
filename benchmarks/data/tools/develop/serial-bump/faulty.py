"""New serial numbers of DNS zones."""

from pydantic import BaseModel

TOOL = {
    "name": "serial_bump",
    "description": "The next serial number of DNS zones, the day and two digits (2026031400 first); never lower than or equal to the old one, so that one of a later day just goes up by one",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    zones: dict[str, int]
    day: str


class Output(BaseModel):
    serials: dict[str, int]
    new_day: list[str]
    ahead: int


def run(input: Input) -> Output:
    """Zones by name; those that begin the day's numbers, and how many were of a later day."""
    first = int(input.day.replace("-", "")) * 100
    serials = {}
    new_day = []
    ahead = 0
    for zone in sorted(input.zones):
        old = input.zones[zone]
        if old >= first + 100:
            ahead += 1
        if first <= old < first + 100:
            serials[zone] = old + 1
        else:
            serials[zone] = first
            new_day.append(zone)
    return Output(serials=serials, new_day=new_day, ahead=ahead)
