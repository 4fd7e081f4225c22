"""Streets of addresses that were written in any letters."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "street_names",
    "description": "Streets as they are printed on labels, from addresses in capitals or small letters: each word has a capital in front and small letters after it; how many addresses there are in each, their numbers, and the street with the most",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Street(BaseModel):
    name: str
    numbers: list[str]


class Output(BaseModel):
    streets: list[Street]
    most: str | None
    unclear: list[str]


def run(input: Input) -> Output:
    """Lines: number, a comma, street; those without a comma are unclear."""
    streets: dict[str, list[str]] = {}
    unclear = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        number, comma, street = line.partition(",")
        words = " ".join(street.split())
        if not comma or not words:
            unclear += [line] if line.strip() else []
            continue
        name = words.title()
        numbers = streets.setdefault(name, [])
        if number.strip().lower() not in numbers:
            numbers.append(number.strip().lower())
    ordered = [Street(name=name, numbers=numbers) for name, numbers in sorted(streets.items())]
    most = max(ordered, key=lambda street: len(street.numbers), default=None)
    return Output(streets=ordered, most=most.name if most else None, unclear=unclear)
