"""Keys that are out."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "keys_out",
    "description": "Keys that were lent out and not brought back, by who has them, from a list of loans and returns",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: person > key when it is lent, person < key when it is back")
    more_than: int = Field(0, description="Only people who have more keys than that")


class Output(BaseModel):
    people: dict[str, list[str]]
    keys: int


def loans(text: str) -> dict[str, set[str]]:
    held: dict[str, set[str]] = {}
    for line in text.splitlines():
        if ">" in line:
            person, key = line.split(">", 1)
            held.setdefault(person.strip(), set()).add(key.strip())
        elif "<" in line:
            person, key = line.split("<", 1)
            held.setdefault(person.strip(), set()).discard(key.strip())
    return held


def chosen(held: dict[str, set[str]], more_than: int) -> dict[str, list[str]]:
    found = {}
    for person in sorted(held):
        if len(held[person]) > more_than:
            found[person] = sorted(held[person])
    return found


def run(input: Input) -> Output:
    people = chosen(loans(Path(input.path).read_text(encoding="utf-8")), input.more_than)
    return Output(people=people, keys=sum(len(keys) for keys in people.values()))
