"""Reads the sheet of a fair's exhibitors."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "exhibitor_sheet",
    "description": "The exhibitors of a fair by hall, which is the letter of the stand; what else is said of each beside name and stand, and the names of those without a web address",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Exhibitors with an empty line between two, each with lines of the form: key: value")


class Output(BaseModel):
    halls: dict[str, list[str]]
    details: dict[str, dict[str, str]]
    without_web: list[str]


def parse(block: str) -> dict[str, str]:
    entry = {}
    for line in block.splitlines():
        if line.strip():
            key, value = line.split(":", 1)
            entry[key.strip().lower()] = value.strip()
    return entry


def exhibitors(path: str) -> list[dict[str, str]]:
    text = Path(path).read_text(encoding="utf-8")
    entries = [parse(block) for block in text.split("\n\n")]
    return [entry for entry in entries if "name" in entry]


def run(input: Input) -> Output:
    """An exhibitor without a stand is in the hall "?"; a key that occurs twice has its last value."""
    halls: dict[str, list[str]] = {}
    details = {}
    without_web = []
    for entry in exhibitors(input.path):
        name = entry["name"]
        halls.setdefault(entry.get("stand", "")[:1] or "?", []).append(name)
        details[name] = {key: value for key, value in entry.items() if key not in ("name", "stand")}
        if not entry.get("web"):
            without_web.append(name)
    return Output(halls=halls, details=details, without_web=without_web)
