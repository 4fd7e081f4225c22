"""Basic parts of machines."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "parts_needed",
    "description": "How many of the basic parts a number of machines needs, from a list of parts of parts",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: assembly: number part, number part, ...")
    build: dict[str, int]
    stock: dict[str, int] = Field({}, description="Basic parts that are there")


class Output(BaseModel):
    needed: dict[str, int]
    to_buy: dict[str, int]


def read(path: str) -> dict[str, list[tuple[int, str]]]:
    parts: dict[str, list[tuple[int, str]]] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        assembly, colon, rest = line.partition(":")
        if colon:
            entries = [entry.strip().split(None, 1) for entry in rest.split(",") if entry.strip()]
            parts[assembly.strip()] = [(int(number), name) for number, name in entries]
    return parts


def add(name: str, number: int, parts: dict[str, list[tuple[int, str]]], needed: dict[str, int]) -> None:
    """Count what a number of a part consists of."""
    if name not in parts:
        needed[name] = needed.get(name, 0) + number
        return
    for each, part in parts[name]:
        add(part, each, parts, needed)


def run(input: Input) -> Output:
    parts = read(input.path)
    needed: dict[str, int] = {}
    for name, number in input.build.items():
        if number > 0:
            add(name, number, parts, needed)
    lacking = {name: number - input.stock.get(name, 0) for name, number in sorted(needed.items())}
    return Output(needed=dict(sorted(needed.items())), to_buy={name: n for name, n in lacking.items() if n > 0})
