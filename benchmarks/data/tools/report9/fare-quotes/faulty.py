"""Quotes for journeys."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "fare_quotes",
    "description": "What journeys cost, by a table of distances and prices, and how many were looked up",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    distances: str = Field(description="Lines FROM TO KILOMETRES; they hold for both directions")
    journeys: str = Field(description="Lines FROM TO CLASS [PASSENGERS], the class is 1 or 2")
    price: int = Field(default=20, ge=0, description="Cents for a kilometre in the second class")
    least: int = Field(default=300, ge=0, description="Cents that a ticket costs at least")


class Output(BaseModel):
    quotes: list[str]
    looked_up: int
    unknown: list[str]


class Fares:
    """Fares of single tickets; each is worked out once."""

    def __init__(self, distances: dict[frozenset[str], int], price: int, least: int) -> None:
        self.distances = distances
        self.price = price
        self.least = least
        self.known: dict[frozenset[str], int] = {}

    def fare(self, start: str, end: str, grade: str) -> int | None:
        pair = frozenset((start, end))
        if pair not in self.distances:
            return None
        key = pair
        if key not in self.known:
            self.known[key] = self.work_out(self.distances[pair], grade)
        return self.known[key]

    def work_out(self, kilometres: int, grade: str) -> int:
        fare = max(self.least, kilometres * self.price)
        return fare * 8 // 5 if grade == "1" else fare


def rows(path: str) -> list[list[str]]:
    return [line.split() for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]


def run(input: Input) -> Output:
    distances = {frozenset((start, end)): int(length) for start, end, length in rows(input.distances)}
    fares = Fares(distances, input.price, input.least)
    quotes = []
    unknown = []
    for start, end, grade, *rest in rows(input.journeys):
        single = fares.fare(start, end, grade)
        if single is None:
            unknown.append(f"{start}-{end}")
            continue
        total = single * (int(rest[0]) if rest else 1)
        quotes.append(f"{start}-{end}: {total // 100}.{total % 100:02}")
    return Output(quotes=quotes, looked_up=len(fares.known), unknown=unknown)
