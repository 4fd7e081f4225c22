"""Wind chill as the weather services of North America compute it."""

from pydantic import BaseModel

TOOL = {
    "name": "wind_chill",
    "description": "Felt temperatures: the wind chill formula holds at 10 °C or less and with more than 4.8 km/h of wind, both; elsewhere the air's own temperature; and the coldest felt",
    "effects": ["pure"],
    "dependencies": [],
}


class Reading(BaseModel):
    celsius: float
    kmh: float


class Input(BaseModel):
    readings: list[Reading]


class Output(BaseModel):
    felt: list[float]
    coldest: float | None
    frost: int


def felt(reading: Reading) -> float:
    air, wind = reading.celsius, reading.kmh
    if air <= 10 or wind > 4.8:
        power = wind**0.16
        return round(13.12 + 0.6215 * air - 11.37 * power + 0.3965 * air * power, 1)
    return air


def run(input: Input) -> Output:
    values = [felt(reading) for reading in input.readings]
    return Output(
        felt=values,
        coldest=min(values, default=None),
        frost=sum(value < 0 for value in values),
    )
