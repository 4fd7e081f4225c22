"""A table of medals."""

from collections import defaultdict

from pydantic import BaseModel

TOOL = {
    "name": "medal_table",
    "description": "Medal table from podiums (gold, silver, bronze): nations by gold, then silver, then bronze, then name; equal medals share a place",
    "effects": ["pure"],
    "dependencies": [],
}


class Event(BaseModel):
    event: str
    podium: list[str]


class Input(BaseModel):
    events: list[Event]


class Row(BaseModel):
    place: int
    nation: str
    medals: list[int]


class Output(BaseModel):
    table: list[Row]
    nations: int


def run(input: Input) -> Output:
    medals: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for event in input.events:
        for kind, nation in enumerate(event.podium[:3]):
            medals[nation][kind] += 1
    order = sorted(medals, key=lambda nation: (-sum(medals[nation]), nation))
    table: list[Row] = []
    for number, nation in enumerate(order, start=1):
        shared = bool(table) and table[-1].medals == medals[nation]
        place = table[-1].place if shared else number
        table.append(Row(place=place, nation=nation, medals=medals[nation]))
    return Output(table=table, nations=len(table))
