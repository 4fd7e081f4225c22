"""Reads the settings of a theme."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "theme_settings",
    "description": "The settings of a theme's file, where a remark takes a line of its own that begins with # or is set off from a value by a # that stands alone; which settings are colours, and which lines (from 1) are none of this",
    "effects": ["read"],
    "dependencies": [],
}

COLOUR = re.compile(r"#(?:[0-9a-fA-F]{3}){1,2}")


class Input(BaseModel):
    path: str


class Output(BaseModel):
    settings: dict[str, str]
    colours: list[str]
    wrong: list[int]


def run(input: Input) -> Output:
    """Lines of the form NAME = VALUE; the last one of a name counts."""
    settings: dict[str, str] = {}
    wrong = []
    for number, line in enumerate(Path(input.path).read_text(encoding="utf-8").splitlines(), start=1):
        line = re.sub(r"#.*", "", line).strip()
        if not line:
            continue
        name, sign, value = line.partition("=")
        if not sign or not name.strip():
            wrong.append(number)
            continue
        settings[name.strip()] = value.strip()
    colours = sorted(name for name, value in settings.items() if COLOUR.fullmatch(value))
    return Output(settings=settings, colours=colours, wrong=wrong)
