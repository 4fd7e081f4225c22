"""Files of nested folders."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

TOOL = {
    "name": "folder_files",
    "description": "For each drive of a JSON listing (nested folders; a number is a file's size) the paths of its files below the drive, sorted, and their size in sum",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    files: dict[str, list[str]]
    sizes: dict[str, int]


def gather(folder: dict[str, Any], above: str = "") -> list[tuple[str, int]]:
    """Path and size of each file in a folder and the folders below it."""
    found: list[tuple[str, int]] = []
    for name, entry in folder.items():
        place = f"{above}{name}"
        if isinstance(entry, dict):
            found += gather(entry, f"{place}/")
        else:
            found.append((place, entry))
    return found


def run(input: Input) -> Output:
    drives = json.loads(Path(input.path).read_text(encoding="utf-8"))
    files: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    for drive, folder in drives.items():
        found = gather(folder)
        files[drive] = sorted(place for place, _ in found)
        sizes[drive] = sum(size for _, size in found)
    return Output(files=files, sizes=sizes)
