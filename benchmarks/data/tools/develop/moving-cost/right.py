"""Value of a stock at moving average cost."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "moving_cost",
    "description": "The stock of each article and its value at moving average cost: each receipt mixes its price with that of the pieces that are there, and an issue goes out at the average",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    stock: dict[str, int]
    value: dict[str, float]
    issued: float


def run(input: Input) -> Output:
    """Lines: in or out, article, pieces, price. An issue of more than there is takes what is there; its price is not read."""
    stock: dict[str, int] = {}
    average: dict[str, float] = {}
    issued = 0.0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        kind, article, text, price = (cell.strip() for cell in line.split(","))
        pieces = int(text)
        held = stock.get(article, 0)
        if kind == "in":
            if held:
                average[article] = (held * average[article] + pieces * float(price)) / (held + pieces)
            else:
                average[article] = float(price)
            stock[article] = held + pieces
        else:
            taken = min(pieces, held)
            issued += taken * average.get(article, 0.0)
            stock[article] = held - taken
    return Output(
        stock=stock,
        value={article: round(stock[article] * average.get(article, 0.0), 2) for article in stock},
        issued=round(issued, 2),
    )
