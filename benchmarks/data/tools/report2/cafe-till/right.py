"""What a till took on a day."""

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "cafe_till",
    "description": "What a caf\u00e9's till holds at the end of a day: what was sold (at a price, or for free to the staff), what of it was taken back (the last sale of the article), the remarks of the day, and the lines that say nothing it knows",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: open cents, sell article cents, sell article free, void article, note words")


class Output(BaseModel):
    drawer: int
    sold: dict[str, int]
    free: int
    notes: list[str]
    unknown: int


@dataclass
class Till:
    drawer: int = 0
    free: int = 0
    unknown: int = 0
    notes: list[str] = field(default_factory=list)
    sales: list[tuple[str, int]] = field(default_factory=list)

    def do(self, words: list[str]) -> None:
        match words:
            case ["open", cents]:
                self.drawer = int(cents)
            case ["sell", article, "free"]:
                self.free += 1
                self.sales.append((article, 0))
            case ["sell", article, cents]:
                self.drawer += int(cents)
                self.sales.append((article, int(cents)))
            case ["void", article]:
                self.void(article)
            case ["note", *rest]:
                self.notes.append(" ".join(rest))
            case _:
                self.unknown += 1

    def void(self, article: str) -> None:
        for place in range(len(self.sales) - 1, -1, -1):
            if self.sales[place][0] == article:
                self.drawer -= self.sales.pop(place)[1]
                return


def run(input: Input) -> Output:
    till = Till()
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        till.do(line.split())
    sold: dict[str, int] = {}
    for article, _ in till.sales:
        sold[article] = sold.get(article, 0) + 1
    return Output(drawer=till.drawer, sold=sold, free=till.free, notes=till.notes, unknown=till.unknown)
