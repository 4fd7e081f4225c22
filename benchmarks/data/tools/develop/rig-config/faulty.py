"""Reads the settings of a test rig."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "rig_config",
    "description": "Settings of a test rig (name = value a line; lines that are empty or begin with # are passed over, [end] ends the file) and the names whose value is a number or on",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    settings: dict[str, str]
    active: list[str]


def number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def run(input: Input) -> Output:
    settings: dict[str, str] = {}
    for place, line in enumerate(Path(input.path).read_text(encoding="utf-8").splitlines(), start=1):
        line = line.strip()
        if line == "[end]":
            break
        if not line or line.startswith("#"):
            break
        name, sign, value = line.partition("=")
        if not sign:
            raise ValueError(f"line {place}: {line!r} has no =")
        settings[name.strip()] = value.strip()
    active = [name for name, value in settings.items() if value == "on" or number(value)]
    return Output(settings=settings, active=active)
