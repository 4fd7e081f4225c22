"""Baskets with special prices."""

from pydantic import BaseModel

TOOL = {
    "name": "special_price",
    "description": "What a basket costs: an article's special price counts where it has one, even if it is 0, else (also where it is null) the normal price; each line, the sum, and what the special prices save (negative where they are higher)",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    prices: dict[str, float]
    special: dict[str, float | None] = {}
    basket: dict[str, int]


class Output(BaseModel):
    lines: dict[str, float]
    total: float
    saved: float


def run(input: Input) -> Output:
    lines: dict[str, float] = {}
    normal = 0.0
    for article, count in input.basket.items():
        if article not in input.prices:
            raise ValueError(f"there is no price for {article!r}")
        if count < 0:
            raise ValueError(f"{count} of {article!r} cannot be bought")
        price = input.prices[article]
        special = input.special.get(article)
        lines[article] = round(count * (special or price), 2)
        normal += count * price
    total = round(sum(lines.values()), 2)
    return Output(lines=lines, total=total, saved=round(normal - total, 2))
