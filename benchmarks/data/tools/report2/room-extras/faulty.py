"""What rooms cost with their extras."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "room_extras",
    "description": "What each room of a guest house costs a night with its extras, in cents, and which rooms are dear: those whose own price, without the extras, is at a limit or above it; and what all the extras together bring",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: name;cents;extra+extra, where there may be no extras")
    dear: int = Field(10000, description="Cents from which a room is dear")


class Output(BaseModel):
    costs: dict[str, int]
    dear: list[str]
    extras: int


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split("+") if part.strip()]


def run(input: Input) -> Output:
    costs: dict[str, int] = {}
    dear: list[str] = []
    extras = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        name, own, more = line.split(";")
        price = int(own)
        costs[name] = price
        for price in numbers(more):
            costs[name] += price
            extras += price
        if price >= input.dear:
            dear.append(name)
    return Output(costs=costs, dear=sorted(dear), extras=extras)
