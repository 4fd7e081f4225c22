"""Shelves of a stock room."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "shelf_contents",
    "description": "What stands on each shelf of a stock room after a list of movements (put, take, move)",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: put THING SHELF, take THING SHELF, move THING SHELF SHELF")


class Output(BaseModel):
    shelves: dict[str, list[str]]
    missing: int


class Shelf:
    """One shelf, by its name."""

    things: list[str] = []

    def __init__(self, name: str) -> None:
        self.name = name

    def put(self, thing: str) -> None:
        self.things.append(thing)

    def take(self, thing: str) -> bool:
        if thing not in self.things:
            return False
        self.things.remove(thing)
        return True


class Room:
    def __init__(self) -> None:
        self.shelves: dict[str, Shelf] = {}
        self.missing = 0

    def shelf(self, name: str) -> Shelf:
        if name not in self.shelves:
            self.shelves[name] = Shelf(name)
        return self.shelves[name]

    def follow(self, words: list[str]) -> None:
        verb, thing, place = words[:3]
        if verb == "put":
            self.shelf(place).put(thing)
        elif not self.shelf(place).take(thing):
            self.missing += 1
        elif verb == "move":
            self.shelf(words[3]).put(thing)


def run(input: Input) -> Output:
    room = Room()
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            room.follow(line.split())
    shelves = {name: sorted(shelf.things) for name, shelf in sorted(room.shelves.items())}
    return Output(shelves=shelves, missing=room.missing)
