"""Parcels that are too large."""

from pydantic import BaseModel

TOOL = {
    "name": "parcel_girth",
    "description": "Classes parcels by size: a parcel's size is its longest side and the girth around the other two; those above the limit go as freight",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    parcels: dict[str, list[float]]
    limit: float = 300


class Output(BaseModel):
    sizes: dict[str, float]
    freight: list[str]
    largest: str | None


def run(input: Input) -> Output:
    """Three sides in cm, in any order. Exactly at the limit it is still a parcel; of the same size the first is the largest."""
    sizes = {}
    for name, sides in input.parcels.items():
        if len(sides) != 3:
            raise ValueError(f"{name} needs three sides")
        long, *others = sorted(sides, reverse=True)
        sizes[name] = long + 2 * sum(others)
    freight = [name for name, size in sizes.items() if size > input.limit]
    largest = max(sizes, key=lambda name: sizes[name], default=None)
    return Output(sizes=sizes, freight=freight, largest=largest)
