"""Check characters of vehicle identification numbers (ISO 3779, North America)."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "vin_check",
    "description": "Which vehicle identification numbers (one a line) have a right check character, the ninth: the weighted sum modulo 11, where 10 is written X; the others are wrong, and so is what has not 17 allowed letters and digits",
    "effects": ["read"],
    "dependencies": [],
}

VALUES = dict(
    zip("ABCDEFGHJKLMNPRSTUVWXYZ", [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 7, 9, 2, 3, 4, 5, 6, 7, 8, 9])
)
VALUES |= {str(digit): digit for digit in range(10)}
WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)


class Input(BaseModel):
    path: str


class Output(BaseModel):
    valid: list[str]
    wrong: list[str]


def valid(number: str) -> bool:
    if len(number) != 17 or not set(number) <= set(VALUES):
        return False
    total = sum(VALUES[sign] * weight for sign, weight in zip(number, WEIGHTS))
    rest = total % 11
    return number[8] == str(rest)


def run(input: Input) -> Output:
    lines = Path(input.path).read_text(encoding="utf-8").split()
    numbers = [line.upper() for line in lines]
    return Output(
        valid=[number for number in numbers if valid(number)],
        wrong=[number for number in numbers if not valid(number)],
    )
