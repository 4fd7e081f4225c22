"""Reads an INI file without interpolation."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "ini_settings",
    "description": "Settings of an INI file",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    settings: dict[str, dict[str, str]]
    count: int


def clean(line: str) -> str:
    line = line.strip()
    return "" if line.startswith(("#", ";")) else line


def run(input: Input) -> Output:
    """Sections with their keys; a line ``key = value`` before the first section is an error."""
    settings: dict[str, dict[str, str]] = {}
    section = None
    for number, raw in enumerate(Path(input.path).read_text(encoding="utf-8").splitlines(), start=1):
        line = clean(raw)
        if not line:
            continue
        if line.startswith("[") and line.endswith("]"):
            section = settings.setdefault(line[1:-1], {})
        elif section is None:
            raise ValueError(f"line {number}: no section yet")
        else:
            key, value = line.split("=")
            section[key.strip()] = value.strip()
    return Output(settings=settings, count=sum(len(keys) for keys in settings.values()))
