"""Freight charges of a parcel service (in cents)."""

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "parcel_freight",
    "description": "Freight of parcels by weight, size and zone",
    "effects": ["read"],
    "dependencies": [],
}

VOLUME_DIVISOR = 5000  # cubic centimetres for a kilogram
STEPS = [(1.0, 490), (5.0, 790), (10.0, 1090), (31.5, 1890)]
ABOVE = 60  # for each begun kilogram beyond the last step
ZONES = {"home": 100, "eu": 180, "world": 320}  # percent of the price at home


class Input(BaseModel):
    path: str = Field(description="JSON list of parcels: id, kg, size_cm (three sides), zone, perhaps insured (euros)")
    fuel_percent: int = Field(0, ge=0, description="On every freight, before the insurance")


class Output(BaseModel):
    cents: dict[str, int]
    total: int
    by_volume: list[str]


@dataclass
class Parcel:
    kg: float
    volume_kg: float
    zone: str
    insured: int

    @property
    def bulky(self) -> bool:
        return self.volume_kg > self.kg

    @classmethod
    def read(cls, entry: dict) -> "Parcel":
        length, width, height = entry["size_cm"]
        return cls(entry["kg"], length * width * height / VOLUME_DIVISOR, entry["zone"], entry.get("insured", 0))


def base_price(kg: float) -> int:
    for limit, price in STEPS:
        if kg <= limit:
            return price
    limit, price = STEPS[-1]
    beyond = -int(-(kg - limit) // 1)
    return price + beyond * ABOVE


def insurance(euros: int) -> int:
    """Half a percent of what is above 100 euros."""
    return max(0, euros - 100) * 100 * 5 // 1000


def freight(parcel: Parcel, fuel_percent: int) -> int:
    """A parcel is charged by its weight or by its volume, whichever is more."""
    if parcel.bulky:
        return base_price(parcel.volume_kg) * ZONES[parcel.zone] // 100 + insurance(parcel.insured)
    price = base_price(parcel.kg) * ZONES[parcel.zone] // 100
    price += price * fuel_percent // 100
    return price + insurance(parcel.insured)


def run(input: Input) -> Output:
    cents, bulky = {}, []
    for entry in json.loads(Path(input.path).read_text(encoding="utf-8")):
        parcel = Parcel.read(entry)
        cents[entry["id"]] = freight(parcel, input.fuel_percent)
        if parcel.bulky:
            bulky.append(entry["id"])
    return Output(cents=cents, total=sum(cents.values()), by_volume=bulky)
