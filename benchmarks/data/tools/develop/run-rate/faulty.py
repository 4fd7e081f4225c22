"""Run rates in cricket."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "run_rate",
    "description": "Run rates (runs an over, two decimals) of innings whose overs are written as overs.balls with six balls in an over (18.4 is 18 overs and 4 balls), the highest of them, and the balls bowled in all",
    "effects": ["pure"],
    "dependencies": [],
}

OVER = 6


class Innings(BaseModel):
    team: str
    runs: int = Field(ge=0)
    overs: str


class Input(BaseModel):
    innings: list[Innings]


class Output(BaseModel):
    rates: dict[str, float | None]
    best: str | None
    balls: int


def balls(overs: str) -> int:
    return round(float(overs) * OVER)


def run(input: Input) -> Output:
    rates: dict[str, float | None] = {}
    total = 0
    for innings in input.innings:
        bowled = balls(innings.overs)
        total += bowled
        rates[innings.team] = round(innings.runs * OVER / bowled, 2) if bowled else None
    known = {team: rate for team, rate in rates.items() if rate is not None}
    return Output(
        rates=rates,
        best=max(known, key=lambda team: known[team], default=None),
        balls=total,
    )
