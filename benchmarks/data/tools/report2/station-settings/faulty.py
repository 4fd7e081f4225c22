"""Settings of thermostats."""

import configparser

from pydantic import BaseModel, Field

TOOL = {
    "name": "station_settings",
    "description": "The settings of thermostats from an ini file: for each station its target (20 where none is given), the format of its display as it is written, and whether its fan is on; values may hold any sign",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="An ini file with a section for each station")


class Station(BaseModel):
    name: str
    target: float = 20
    format: str = ""
    fan: bool = False


class Output(BaseModel):
    stations: list[Station]
    warmest: str


def parser_of(path: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(path, encoding="utf-8")
    return parser


def run(input: Input) -> Output:
    parser = parser_of(input.path)
    stations = []
    for name in parser.sections():
        section = parser[name]
        stations.append(
            Station(
                name=name,
                target=section.getfloat("target", fallback=20),
                format=section.get("format", ""),
                fan=section.getboolean("fan", fallback=False),
            )
        )
    warmest = max(stations, key=lambda station: station.target, default=None)
    return Output(stations=stations, warmest=warmest.name if warmest else "")
