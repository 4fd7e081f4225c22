"""Loads the vans of a delivery tour."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "van_loads",
    "description": "Which parcels go into which van and how heavy each load is, which vans carry more than the limit, which stay empty, and the parcels of vans that do not drive",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: parcel;van;kilograms")
    vans: list[str]
    limit: float = 50


class Output(BaseModel):
    loads: dict[str, list[str]]
    weights: dict[str, float]
    too_heavy: list[str]
    empty: list[str]
    left: list[str]


def run(input: Input) -> Output:
    loads: dict[str, list[str]] = dict.fromkeys(input.vans, [])
    weights = dict.fromkeys(input.vans, 0.0)
    left = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        parcel, van, weight = (part.strip() for part in line.split(";"))
        if van not in loads:
            left.append(parcel)
            continue
        loads[van].append(parcel)
        weights[van] = round(weights[van] + float(weight), 2)
    too_heavy = [van for van in loads if weights[van] > input.limit]
    empty = [van for van in loads if not loads[van]]
    return Output(loads=loads, weights=weights, too_heavy=too_heavy, empty=empty, left=left)
