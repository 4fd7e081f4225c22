"""Holds of a library."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "library_holds",
    "description": "Who gets the books of a library that are brought back, and who waits for them, from a log of its desk",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: event; book; reader. Events are hold, cancel, and return (without a reader)")


class Output(BaseModel):
    given: list[str] = Field(description="Book and reader, in the order in which books came back")
    waiting: dict[str, list[str]]
    shelf: list[str] = Field(description="Books that came back and nobody waited for, sorted")


def run(input: Input) -> Output:
    """A reader holds a book once; a second hold changes nothing."""
    queues: dict[str, list[str]] = {}
    given: list[str] = []
    shelf: set[str] = set()
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        event, book, *rest = (part.strip() for part in line.split(";"))
        reader = rest[0] if rest else ""
        queue = queues.setdefault(book, [])
        if event == "hold" and book in shelf:
            shelf.remove(book)
            given.append(f"{book}: {reader}")
        elif event == "hold" and reader not in queue:
            queue.append(reader)
        elif event == "return" and queue:
            given.append(f"{book}: {queue.pop(0)}")
        elif event == "return":
            shelf.add(book)
    return Output(given=given, waiting={book: names for book, names in queues.items() if names}, shelf=sorted(shelf))
