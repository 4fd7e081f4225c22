"""Change at a till."""

from pydantic import BaseModel

TOOL = {
    "name": "till_coins",
    "description": "A till: the sum of amounts, what is given back, and the fewest coins and notes for it in cents (5000, 2000, 1000, 500, 200, 100, 50, 20, 10, 5, 2, 1); amounts are in whole cents",
    "effects": ["pure"],
    "dependencies": [],
}

PIECES = (5000, 2000, 1000, 500, 200, 100, 50, 20, 10, 5, 2, 1)


class Input(BaseModel):
    amounts: list[float]
    paid: float


class Output(BaseModel):
    total: float
    back: float
    pieces: dict[str, int]


def cents(amount: float) -> int:
    return round(amount * 100)


def run(input: Input) -> Output:
    total = sum(cents(amount) for amount in input.amounts)
    back = cents(input.paid) - total
    if back < 0:
        raise ValueError(f"{-back} cents are missing")
    pieces: dict[str, int] = {}
    rest = back
    for piece in PIECES:
        count, rest = divmod(rest, piece)
        if count:
            pieces[str(piece)] = count
    return Output(total=total / 100, back=back / 100, pieces=pieces)
