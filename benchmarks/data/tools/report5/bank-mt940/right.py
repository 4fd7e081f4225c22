"""Movements of an MT940 statement."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "bank_mt940",
    "description": "Sums of the movements in a SWIFT MT940 statement, in cents, and whether its balances fit",
    "effects": ["read"],
    "dependencies": [],
}

BALANCE = re.compile(r":(60F|62F):([CD])(\d{6})([A-Z]{3})(\d+,\d{0,2})")
MOVEMENT = re.compile(r":61:(\d{6})(?:\d{4})?(RC|RD|C|D)[A-Z]?(\d+,\d{0,2})")


class Input(BaseModel):
    path: str = Field(description="A statement with :60F:, :61: and :62F: lines")


class Output(BaseModel):
    opening: int
    closing: int
    came_in: int
    went_out: int
    fits: bool


def cents(text: str) -> int:
    """12,5 as 1250."""
    whole, _, rest = text.partition(",")
    return int(whole) * 100 + int(rest.ljust(2, "0"))


def signed(kind: str, amount: str) -> int:
    """What a movement does to the account; R marks one that takes another back."""
    value = cents(amount)
    return value if kind in ("C", "RD") else -value


def run(input: Input) -> Output:
    opening = closing = came_in = went_out = 0
    for line in Path(input.path).read_text(encoding="ascii").splitlines():
        balance = BALANCE.match(line)
        if balance:
            value = cents(balance[5]) * (1 if balance[2] == "C" else -1)
            if balance[1] == "60F":
                opening = value
            else:
                closing = value
        movement = MOVEMENT.match(line)
        if movement:
            value = signed(movement[2], movement[3])
            came_in += max(value, 0)
            went_out += max(-value, 0)
    fits = opening + came_in - went_out == closing
    return Output(opening=opening, closing=closing, came_in=came_in, went_out=went_out, fits=fits)
