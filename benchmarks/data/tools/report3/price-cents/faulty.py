"""Prices in cents."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "price_cents",
    "description": "Prices in whole cents, and their sum, from a list with prices such as 4.35 or EUR 1.15",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: what = price")


class Output(BaseModel):
    cents: dict[str, int]
    sum: int


def cents(text: str) -> int:
    number = text.upper().removeprefix("EUR").strip()
    return int(float(number) * 100)


def pairs(path: str) -> list[tuple[str, str]]:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    halves = (line.split("=", 1) for line in lines if "=" in line)
    return [(what.strip(), price.strip()) for what, price in halves]


def run(input: Input) -> Output:
    found = {what: cents(price) for what, price in pairs(input.path)}
    return Output(cents=found, sum=sum(found.values()))
