"""Sorts the flats of a list of offers."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "flat_listings",
    "description": "Flats from the lowest rent to the highest, and from the largest area to the smallest; those without a rent or an area come last in that order, and equal ones stay in the order of the file; and the mean of the rents that are given (with two decimals)",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: name;rent;square metres, where either number may be left out")


class Flat(BaseModel):
    name: str
    rent: float | None
    area: float | None


class Output(BaseModel):
    by_rent: list[str]
    by_area: list[str]
    mean_rent: float | None


def number(text: str) -> float | None:
    return float(text) if text.strip() else None


def run(input: Input) -> Output:
    flats = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            name, rent, area = line.split(";")
            flats.append(Flat(name=name.strip(), rent=number(rent), area=number(area)))
    by_rent = sorted(flats, key=lambda flat: (flat.rent is None, flat.rent or 0))
    by_area = sorted(flats, key=lambda flat: (flat.area is None, -(flat.area or 0)))
    rents = [flat.rent for flat in flats if flat.rent is not None]
    return Output(
        by_rent=[flat.name for flat in by_rent],
        by_area=[flat.name for flat in by_area],
        mean_rent=round(sum(rents) / len(rents), 2) if rents else None,
    )
