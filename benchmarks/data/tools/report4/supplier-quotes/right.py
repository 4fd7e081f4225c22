"""Quotes of suppliers."""

import asyncio
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "supplier_quotes",
    "description": "The cheapest supplier of each item among those that have enough pieces of it",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    suppliers: list[str] = Field(description="NAME.csv has lines of the form item,price,pieces; asked in this order")
    items: list[str]
    pieces: int = Field(1, ge=1)


class Output(BaseModel):
    cheapest: dict[str, str]
    total: int
    missing: list[str]


class Supplier:
    """A price list that is read when it is first asked for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.known: dict[str, tuple[int, int]] | None = None

    async def lines(self) -> dict[str, tuple[int, int]]:
        await asyncio.sleep(0)
        if self.known is None:
            self.known = {}
            path = Path(f"{self.name}.csv")
            for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
                item, price, pieces = line.split(",")
                self.known[item] = (int(price), int(pieces))
        return self.known

    async def price(self, item: str) -> int | None:
        return (await self.lines()).get(item, (None, 0))[0]

    async def has(self, item: str, pieces: int) -> bool:
        return (await self.lines()).get(item, (0, 0))[1] >= pieces


async def cheapest(suppliers: list[Supplier], item: str, pieces: int) -> tuple[int, str] | None:
    """The price and the name; the first of equal prices."""
    best = None
    for supplier in suppliers:
        price = await supplier.price(item)
        if price is None or not await supplier.has(item, pieces):
            continue
        if best is None or price < best[0]:
            best = (price, supplier.name)
    return best


async def run(input: Input) -> Output:
    suppliers = [Supplier(name) for name in input.suppliers]
    found = await asyncio.gather(*(cheapest(suppliers, item, input.pieces) for item in input.items))
    quotes = dict(zip(input.items, found, strict=True))
    return Output(
        cheapest={item: quote[1] for item, quote in quotes.items() if quote},
        total=sum(quote[0] for quote in quotes.values() if quote) * input.pieces,
        missing=[item for item, quote in quotes.items() if not quote],
    )
