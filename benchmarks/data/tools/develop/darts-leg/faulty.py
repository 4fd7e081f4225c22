"""A leg of darts."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "darts_leg",
    "description": "What is left after each turn of three darts (the last turn may be shorter) of a leg that has to end with a double, D1 to D20 or 50: a turn that brings the rest below 0, to 1, or to 0 without a double is bust, ends at once, and leaves what was there before it; darts after the end of the leg are not counted",
    "effects": ["pure"],
    "dependencies": [],
}

FACTORS = {"D": 2, "T": 3}


class Input(BaseModel):
    start: int = Field(501, ge=2)
    darts: list[str]


class Output(BaseModel):
    rests: list[int]
    busts: int
    finished: bool


def value(dart: str) -> int:
    if dart[0] in FACTORS:
        return FACTORS[dart[0]] * int(dart[1:])
    return int(dart)


def is_bust(rest: int, dart: str) -> bool:
    double = dart.startswith("D") or dart == "50"
    return rest < 0 or (rest == 0 and not double)


def run(input: Input) -> Output:
    rests: list[int] = []
    busts = 0
    before = rest = input.start
    thrown = 0
    for number, dart in enumerate(input.darts, start=1):
        rest -= value(dart)
        thrown += 1
        bust = is_bust(rest, dart)
        if bust:
            busts += 1
            rest = before
        if bust or rest == 0 or thrown == 3 or number == len(input.darts):
            rests.append(rest)
            before, thrown = rest, 0
        if rest == 0:
            break
    return Output(rests=rests, busts=busts, finished=rest == 0)
