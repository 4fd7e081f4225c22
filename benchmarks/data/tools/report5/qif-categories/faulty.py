"""Spending by category from a QIF file."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "qif_categories",
    "description": "Spending by category from a QIF export, in cents, and the payees of entries without a category",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="A QIF file: a letter and a value a line, ^ after each entry")
    year: int | None = Field(None, description="Only entries of this year")


class Output(BaseModel):
    spent: dict[str, int]
    earned: int
    without: list[str]


def cents(text: str) -> int:
    """-1,234.50 as -123450."""
    sign = -1 if text.startswith("-") else 1
    whole, _, rest = text.lstrip("-+").replace(",", "").partition(".")
    return sign * (int(whole or 0) * 100 + int(rest.ljust(2, "0")[:2]))


def entries(text: str) -> list[dict[str, str]]:
    """Each entry by the letters of its lines."""
    found = []
    entry: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("!") or not line:
            continue
        if line == "^":
            found.append(dict(entry))
        else:
            entry[line[0]] = line[1:].strip()
    return found


def run(input: Input) -> Output:
    spent: dict[str, int] = {}
    earned = 0
    without = set()
    for entry in entries(Path(input.path).read_text(encoding="utf-8")):
        if input.year is not None and not entry.get("D", "").endswith(str(input.year)):
            continue
        amount = cents(entry["T"])
        if amount >= 0:
            earned += amount
            continue
        category = entry.get("L", "").split(":")[0]
        if not category:
            without.add(entry.get("P", "?"))
        spent[category or "other"] = spent.get(category or "other", 0) - amount
    return Output(spent=spent, earned=earned, without=sorted(without))
