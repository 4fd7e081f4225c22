"""Splits the bill for the heating of a house."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "heating_split",
    "description": "The share of each flat in a heating bill by its area, in whole cents that add up to the bill: shares are rounded down, and the cents that are left go to the flats that lost most by it (the first of equal ones); what is charged in all, and the flat that pays most (the first of several)",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: flat;square metres")
    cents: int = Field(ge=0, description="The bill")


class Output(BaseModel):
    shares: dict[str, int]
    charged: int
    most: str | None


def areas(path: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            flat, area = line.split(";")
            found[flat.strip()] = found.get(flat.strip(), 0) + int(area)
    return found


def split(cents: int, parts: dict[str, int]) -> dict[str, int]:
    """Nobody is charged where there is no area at all."""
    whole = sum(parts.values())
    if whole == 0:
        return dict.fromkeys(parts, 0)
    shares = {flat: cents * area // whole for flat, area in parts.items()}
    left = cents - sum(shares.values())
    by_loss = sorted(parts, key=lambda flat: -(cents * parts[flat] % whole))
    for flat in by_loss[:left]:
        shares[flat] += 1
    return shares


def run(input: Input) -> Output:
    """A flat that is listed twice has both areas."""
    shares = split(input.cents, areas(input.path))
    return Output(
        shares=shares,
        charged=sum(shares.values()),
        most=max(shares, key=lambda flat: shares[flat], default=None),
    )
