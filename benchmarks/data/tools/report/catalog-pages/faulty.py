"""Looks through a catalog that comes in pages."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "catalog_pages",
    "description": "How many articles a catalog has that is spread over several files, each naming the next one; the value of all that is in stock, the articles that are sold out, by the alphabet, and the dearest article (the first of several)",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The first page: JSON with items (name, price, stock) and next, the file of the next page, which the last one lacks")


class Item(BaseModel):
    name: str
    price: float
    stock: int = 0


class Output(BaseModel):
    articles: int
    value: float
    sold_out: list[str]
    dearest: str | None


def items(path: str) -> list[Item]:
    page = json.loads(Path(path).read_text(encoding="utf-8"))
    return [Item.model_validate(item) for item in page.get("items", [])]


def worth(stock: list[Item]) -> float:
    return round(sum(item.price * item.stock for item in stock), 2)


def run(input: Input) -> Output:
    """A page may be without items; an article without a stock is sold out."""
    catalog = items(input.path)
    dearest = max(catalog, key=lambda item: item.price, default=None)
    return Output(
        articles=len(catalog),
        value=worth(catalog),
        sold_out=sorted(item.name for item in catalog if item.stock == 0),
        dearest=dearest.name if dearest else None,
    )
