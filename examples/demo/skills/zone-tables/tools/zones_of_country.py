"""Lists the time zones that a country keeps, from the tz database's zone1970.tab."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "zones_of_country",
    "description": "The time zones of a country (ISO 3166 code), sorted, from zone1970.tab",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    table: str
    country: str


class Output(BaseModel):
    zones: list[str]
    remarks: int


def rows(text: str) -> list[list[str]]:
    """The table's fields; comments and empty lines are left out."""
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]


def run(input: Input) -> Output:
    country = input.country.strip().upper()
    zones = []
    remarks = 0
    for fields in rows(Path(input.table).read_text(encoding="utf-8")):
        codes = fields[0]
        if country == codes:
            zones.append(fields[2])
            remarks += len(fields) > 3
    return Output(zones=sorted(zones), remarks=remarks)
