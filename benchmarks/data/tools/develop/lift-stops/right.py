"""The way of a lift."""

from pydantic import BaseModel

TOOL = {
    "name": "lift_stops",
    "description": "Order in which a lift serves calls: those on its way in its direction, then the others on the way back; and how many floors it travels (a call at its own floor comes first)",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    at: int
    direction: str = "up"
    calls: list[int]


class Output(BaseModel):
    stops: list[int]
    floors: int
    ends: int


def order(at: int, direction: str, calls: list[int]) -> list[int]:
    above = sorted(floor for floor in set(calls) if floor > at)
    below = sorted((floor for floor in set(calls) if floor < at), reverse=True)
    here = [at] if at in calls else []
    if direction == "up":
        return here + above + below
    if direction == "down":
        return here + below + above
    raise ValueError(f"a lift goes up or down, not {direction}")


def run(input: Input) -> Output:
    stops = order(input.at, input.direction, input.calls)
    floors = 0
    here = input.at
    for stop in stops:
        floors += abs(stop - here)
        here = stop
    return Output(stops=stops, floors=floors, ends=here)
