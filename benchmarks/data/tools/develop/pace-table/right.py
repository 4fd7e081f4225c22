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


def minutes(pace: float) -> int:
    return round(pace) // 60


def seconds(pace: float) -> int:
    return round(pace) % 60


def shown(metres: float, time: float) -> str:
    pace = time / metres * 1000
    return f"{minutes(pace)}:{seconds(pace):02d}"


def run(input: Input) -> Output:
    speeds = [lap.metres / lap.seconds for lap in input.laps]
    return Output(
        paces=[shown(lap.metres, lap.seconds) for lap in input.laps],
        whole=shown(sum(lap.metres for lap in input.laps), sum(lap.seconds for lap in input.laps)),
        fastest=speeds.index(max(speeds)) + 1,
    )
