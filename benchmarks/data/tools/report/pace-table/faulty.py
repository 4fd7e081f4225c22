"""Paces of a run, lap by lap."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "pace_table",
    "description": "The pace of each lap and of the whole run, as minutes and seconds a kilometre (m:ss), rounded to the nearest second",
    "effects": ["pure"],
    "dependencies": [],
}


class Lap(BaseModel):
    metres: float = Field(gt=0)
    seconds: float = Field(gt=0)


class Input(BaseModel):
    laps: list[Lap] = Field(min_length=1)


class Output(BaseModel):
    paces: list[str]
    whole: str
    fastest: int = Field(description="Number of the fastest lap, from 1; the first of several")


def pace(metres: float, seconds: float) -> str:
    each = seconds / metres * 1000
    minutes = int(each // 60)
    return f"{minutes}:{each - minutes * 60:02.0f}"


def run(input: Input) -> Output:
    speeds = [lap.metres / lap.seconds for lap in input.laps]
    return Output(
        paces=[pace(lap.metres, lap.seconds) for lap in input.laps],
        whole=pace(sum(lap.metres for lap in input.laps), sum(lap.seconds for lap in input.laps)),
        fastest=speeds.index(max(speeds)) + 1,
    )
