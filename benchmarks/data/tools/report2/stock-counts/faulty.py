"""What was in stock at each count."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "stock_counts",
    "description": "What was in stock at each count, with the name of the count, from a list of what came in and went out; the articles that had run out at a count are named apart, and more than there is cannot be taken",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: add article number, take article number, count name")


class Count(BaseModel):
    name: str
    stock: dict[str, int]
    out: list[str]


class Output(BaseModel):
    counts: list[Count]


class Store:
    def __init__(self) -> None:
        self.stock: dict[str, int] = {}
        self.counts: list[tuple[str, dict[str, int]]] = []

    def add(self, article: str, number: str) -> None:
        self.stock[article] = self.stock.get(article, 0) + int(number)

    def take(self, article: str, number: str) -> None:
        self.stock[article] = max(0, self.stock.get(article, 0) - int(number))

    def count(self, name: str) -> None:
        self.counts.append((name, self.stock))


def report(name: str, stock: dict[str, int]) -> Count:
    left = {article: number for article, number in sorted(stock.items()) if number}
    return Count(name=name, stock=left, out=sorted(stock.keys() - left.keys()))


def run(input: Input) -> Output:
    store = Store()
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        word, *rest = line.split()
        getattr(store, word)(*rest)
    return Output(counts=[report(name, stock) for name, stock in store.counts])
