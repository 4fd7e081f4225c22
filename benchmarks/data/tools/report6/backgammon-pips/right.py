"""Pip counts of a backgammon position."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "backgammon_pips",
    "description": "Pip count of both sides: each checker counts the number of its point, seen from its own side (1 to 24), and 25 on the bar; and who is ahead",
    "effects": ["pure"],
    "dependencies": [],
}


POINTS = 24


class Input(BaseModel):
    white: dict[int, int] = Field(description="checkers by point")
    black: dict[int, int]
    bar: dict[str, int] = Field(default_factory=dict)


class Output(BaseModel):
    pips: dict[str, int]
    ahead: str | None
    lead: int
    borne_off: dict[str, int]


def pips(points: dict[int, int], on_bar: int) -> int:
    for point in points:
        if not 1 <= point <= POINTS:
            raise ValueError(f"no such point: {point}")
    return sum(point * count for point, count in points.items()) + (POINTS + 1) * on_bar


def run(input: Input) -> Output:
    sides = {"white": input.white, "black": input.black}
    count = {side: pips(points, input.bar.get(side, 0)) for side, points in sides.items()}
    off = {side: 15 - sum(points.values()) - input.bar.get(side, 0) for side, points in sides.items()}
    lead = count["black"] - count["white"]
    ahead = "white" if lead > 0 else "black" if lead < 0 else None
    return Output(pips=count, ahead=ahead, lead=abs(lead), borne_off=off)
