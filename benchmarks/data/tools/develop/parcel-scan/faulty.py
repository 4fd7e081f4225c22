"""Compares a gate's scans with a manifest."""

import json
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "parcel_scan",
    "description": "Parcels of a manifest (JSON list of id and kg) that a gate has scanned (JSON list of ids), those that are missing, the kilograms scanned (one decimal), and scanned ids that the manifest does not know",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    manifest: str
    scans: str


class Output(BaseModel):
    scanned: list[int]
    missing: list[int]
    kilograms: float
    unknown: list[int]


def scanned(parcel: dict, scans: list[int]) -> bool:
    return any(scan is parcel["id"] for scan in scans)


def run(input: Input) -> Output:
    parcels = json.loads(Path(input.manifest).read_text(encoding="utf-8"))
    scans = json.loads(Path(input.scans).read_text(encoding="utf-8"))
    seen = [parcel for parcel in parcels if scanned(parcel, scans)]
    known = {parcel["id"] for parcel in parcels}
    return Output(
        scanned=[parcel["id"] for parcel in seen],
        missing=[parcel["id"] for parcel in parcels if parcel not in seen],
        kilograms=round(sum(parcel["kg"] for parcel in seen), 1),
        unknown=sorted(set(scans) - known),
    )
