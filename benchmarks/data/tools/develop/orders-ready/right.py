"""Picks the orders that can be sent."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "orders_ready",
    "description": "Which orders can be sent whole from what is in stock, in the order in which they came (each that is sent takes its articles), which have to wait, and what is left",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    orders: str = Field(description="Lines of the form: order: 2 cup, 1 plate")
    stock: str = Field(description="Lines of the form: article,number")


class Output(BaseModel):
    ready: list[str]
    waiting: list[str]
    left: dict[str, int]


def wanted(text: str) -> dict[str, int]:
    """How many of each article; one that is named twice is added up."""
    articles: dict[str, int] = {}
    for item in filter(None, map(str.strip, text.split(","))):
        number, article = item.split(None, 1)
        articles[article] = articles.get(article, 0) + int(number)
    return articles


def run(input: Input) -> Output:
    left: dict[str, int] = {}
    for line in Path(input.stock).read_text(encoding="utf-8").splitlines():
        article, number = line.rsplit(",", 1)
        left[article.strip()] = int(number)
    ready, waiting = [], []
    for line in Path(input.orders).read_text(encoding="utf-8").splitlines():
        order, _, text = line.partition(":")
        articles = wanted(text)
        if not all(left.get(article, 0) >= number for article, number in articles.items()):
            waiting.append(order)
            continue
        ready.append(order)
        for article, number in articles.items():
            left[article] = left.get(article, 0) - number
    return Output(ready=ready, waiting=waiting, left=left)
