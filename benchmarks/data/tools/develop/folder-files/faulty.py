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


FOUND: list[tuple[str, int]] = []


def gather(folder: dict[str, Any], above: str = "") -> None:
    """Path and size of each file in a folder and the folders below it."""
    for name, entry in folder.items():
        place = f"{above}{name}"
        if isinstance(entry, dict):
            gather(entry, f"{place}/")
        else:
            FOUND.append((place, entry))


def run(input: Input) -> Output:
    drives = json.loads(Path(input.path).read_text(encoding="utf-8"))
    files: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    for drive, folder in drives.items():
        gather(folder)
        files[drive] = sorted(place for place, _ in FOUND)
        sizes[drive] = sum(size for _, size in FOUND)
    return Output(files=files, sizes=sizes)
