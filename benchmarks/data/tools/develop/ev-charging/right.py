"""Cost of charging a car by a tariff with a cheaper window."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "ev_charging",
    "description": "Cost in cents of charging by the time it began: cheap within a window of the clock, which may go past midnight",
    "effects": ["read"],
    "dependencies": [],
}

DEAR, CHEAP = 38, 19  # cents for a kilowatt hour


class Input(BaseModel):
    path: str
    night: str = "22:00-06:00"


class Output(BaseModel):
    cents: float
    cheap_kwh: float
    dear_kwh: float
    charges: int


def within(clock: str, window: str) -> bool:
    start, end = window.split("-")
    if start <= end:
        return start <= clock < end
    return clock >= start or clock < end


def run(input: Input) -> Output:
    cheap = 0.0
    dear = 0.0
    charges = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        _, clock, kwh = line.split()
        charges += 1
        if within(clock, input.night):
            cheap += float(kwh)
        else:
            dear += float(kwh)
    cents = cheap * CHEAP + dear * DEAR
    return Output(cents=round(cents, 1), cheap_kwh=cheap, dear_kwh=dear, charges=charges)
