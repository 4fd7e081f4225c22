"""Allergens of dishes."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "menu_allergens",
    "description": "Allergens in dishes through all of their ingredients, and dishes that somebody may eat who avoids some",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="lines `thing: part, part`; a part !x is an allergen")
    dishes: list[str]
    avoid: list[str] = []


class Output(BaseModel):
    allergens: dict[str, list[str]]
    safe: list[str]


def parts_of(path: str) -> dict[str, list[str]]:
    book = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        thing, colon, rest = line.partition(":")
        if colon:
            book[thing.strip()] = [part.strip() for part in rest.split(",") if part.strip()]
    return book


def allergens(thing: str, book: dict[str, list[str]]) -> set[str]:
    found = set()
    for part in book.get(thing, []):
        if part.startswith("!"):
            found.add(part[1:])
        for inner in book.get(part, []):
            if inner.startswith("!"):
                found.add(inner[1:])
    return found


def run(input: Input) -> Output:
    book = parts_of(input.path)
    found = {dish: allergens(dish, book) for dish in input.dishes}
    return Output(
        allergens={dish: sorted(what) for dish, what in found.items()},
        safe=sorted(dish for dish, what in found.items() if not what & set(input.avoid)),
    )
