"""One address book out of several."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "book_merge",
    "description": "Address books put together: for each person all addresses of all books, each once, in the order of the books",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    paths: list[str] = Field(description="JSON files with a list of addresses, or one address, for each person")


class Output(BaseModel):
    people: dict[str, list[str]]
    addresses: int


def entries(path: str) -> dict[str, list[str]]:
    data = json.loads(Path(path).read_text(encoding="utf-8"))
    return {
        name.strip(): [value] if isinstance(value, str) else list(value)
        for name, value in data.items()
    }


def run(input: Input) -> Output:
    merged: dict[str, list[str]] = {}
    for path in input.paths:
        for name, addresses in entries(path).items():
            merged[name] = [
                address for address in addresses if address not in merged.get(name, [])
            ]
    return Output(people=merged, addresses=sum(map(len, merged.values())))
