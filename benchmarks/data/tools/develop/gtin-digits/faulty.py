"""Check digits of article numbers."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "gtin_digits",
    "description": "Give article numbers of 7 or 12 digits their check digit, and check those of 8 or 13",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Numbers, one a line; hyphens and spaces in them do not count")


class Output(BaseModel):
    numbers: list[str] = Field(description="The complete numbers")
    wrong: list[str]


def check_digit(digits: str) -> str:
    """The last digit counts three times, the one before it once, and so on."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        total += int(digit) * (3 if place % 2 == 0 else 1)
    return str(10 - total % 10)


def run(input: Input) -> Output:
    numbers: list[str] = []
    wrong: list[str] = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        digits = line.replace("-", "").replace(" ", "").strip()
        if not digits:
            continue
        if not digits.isdigit() or len(digits) not in (7, 8, 12, 13):
            wrong.append(line.strip())
        elif len(digits) in (7, 12):
            numbers.append(digits + check_digit(digits))
        elif check_digit(digits[:-1]) == digits[-1]:
            numbers.append(digits)
        else:
            wrong.append(digits)
    return Output(numbers=numbers, wrong=wrong)
