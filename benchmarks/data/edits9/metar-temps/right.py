"""Temperatures of airports."""

import re

from pydantic import BaseModel, Field

TOOL = {
    "name": "metar_temps",
    "description": "Temperatures and dew points of METAR reports, in degrees Celsius, and the coldest station; an M before a number is a minus",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    reports: list[str]


class Reading(BaseModel):
    station: str
    temperature: int
    dew: int


class Output(BaseModel):
    readings: list[Reading]
    coldest: str = Field(description="the first station with the lowest temperature; empty without readings")


GROUP = re.compile(r"(M?\d\d)/(M?\d\d)")
KINDS = ("METAR", "SPECI")


def reading(report: str) -> Reading | None:
    """What a report says, or None without temperatures."""
    words = report.split()
    if words and words[0] in KINDS:
        words = words[1:]
    for word in words[1:]:
        match = GROUP.fullmatch(word)
        if match:
            return Reading(
                station=words[0],
                temperature=int(match[1].replace("M", "-")),
                dew=int(match[2].replace("M", "-")),
            )
    return None


def run(input: Input) -> Output:
    found = [each for each in map(reading, input.reports) if each is not None]
    coldest = min(found, key=lambda each: each.temperature).station if found else ""
    return Output(readings=found, coldest=coldest)
