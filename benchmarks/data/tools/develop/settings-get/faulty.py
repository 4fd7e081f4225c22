"""Values out of nested settings."""

from typing import Any

from pydantic import BaseModel

TOOL = {
    "name": "settings_get",
    "description": "Looks values up in nested settings by paths such as db.port; a path that is not there has the default, but a value of 0, false or an empty text is a value like others",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    settings: dict[str, Any]
    paths: list[str]
    default: str = ""


class Output(BaseModel):
    values: dict[str, Any]
    missing: list[str]


def look_up(settings: Any, path: str) -> Any:
    """None where a step of the path is not there."""
    here = settings
    for step in path.split("."):
        if isinstance(here, dict):
            here = here.get(step)
        elif isinstance(here, list) and step.isdigit() and int(step) < len(here):
            here = here[int(step)]
        else:
            return None
    return here


def run(input: Input) -> Output:
    """A number as a step counts in a list from 0. A value that is null counts as missing."""
    values = {}
    missing = []
    for path in input.paths:
        found = look_up(input.settings, path)
        if not found:
            missing.append(path)
            found = input.default
        values[path] = found
    return Output(values=values, missing=missing)
