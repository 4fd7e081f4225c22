"""Best laps of a practice session."""

from pydantic import BaseModel

TOOL = {
    "name": "best_lap",
    "description": "Each driver's best lap in seconds (null where no lap was timed; a lap that is null was not), the fastest of all, the first listed of equals, and how many laps were timed",
    "effects": ["pure"],
    "dependencies": [],
}


class Driver(BaseModel):
    name: str
    laps: list[float | None]


class Input(BaseModel):
    drivers: list[Driver]


class Output(BaseModel):
    best: dict[str, float | None]
    fastest: str | None
    timed: int


def best(laps: list[float | None]) -> float | None:
    return min(laps, default=None)


def run(input: Input) -> Output:
    found: dict[str, float | None] = {}
    timed = 0
    for driver in input.drivers:
        found[driver.name] = best(driver.laps)
        timed += sum(lap is not None for lap in driver.laps)
    fastest, record = None, None
    for name, time in found.items():
        if time is not None and (record is None or time < record):
            fastest, record = name, time
    return Output(best=found, fastest=fastest, timed=timed)
