"""Decides about permits for parking in a zone."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "resident_permits",
    "description": "Which cars get a permit for the zone that they ask for (those of residents and traders, in either case only without unpaid fines), which are refused, how many permits there are in each zone, and the fines that have to be paid by all together",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: plate;resident, trader or visitor;zone;unpaid fines")


class Output(BaseModel):
    granted: list[str]
    refused: list[str]
    zones: dict[str, int]
    unpaid: float


def may_park(kind: str, fines: float) -> bool:
    return (kind == "resident" or kind == "trader") and fines == 0


def run(input: Input) -> Output:
    """Plates in the order of the file; a zone without permits is left out."""
    granted, refused = [], []
    zones: dict[str, int] = {}
    unpaid = 0.0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        plate, kind, zone, owed = (part.strip() for part in line.split(";"))
        fines = float(owed)
        unpaid += fines
        if may_park(kind, fines):
            granted.append(plate)
            zones[zone] = zones.get(zone, 0) + 1
        else:
            refused.append(plate)
    return Output(granted=granted, refused=refused, zones=zones, unpaid=round(unpaid, 2))
