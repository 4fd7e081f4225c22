"""Length of a tour by a chart."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "distance_chart",
    "description": "The legs and the length of a tour by a chart that names each pair of places once, for both directions, and after which stops the night is spent",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    chart: str
    stops: list[str]
    per_day: int = 500


class Output(BaseModel):
    legs: list[int]
    total: int
    nights: list[str]


def read_chart(path: str) -> dict[tuple[str, str], int]:
    chart = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        places, text = line.split(":")
        one, other = (place.strip() for place in places.split(" - "))
        distance = int(text.strip().removesuffix("km"))
        chart[one, other] = distance
    return chart


def run(input: Input) -> Output:
    """A night comes before a leg that would make the day longer than allowed; the first leg of a day always goes."""
    chart = read_chart(input.chart)
    legs = []
    nights = []
    today = 0
    for here, there in zip(input.stops, input.stops[1:], strict=False):
        leg = chart[here, there]
        if today and today + leg > input.per_day:
            nights.append(here)
            today = 0
        today += leg
        legs.append(leg)
    return Output(legs=legs, total=sum(legs), nights=nights)
