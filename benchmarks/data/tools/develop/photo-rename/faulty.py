"""A plan of new names for photographs."""

from datetime import datetime
from pathlib import Path, PurePath

from pydantic import BaseModel, Field

TOOL = {
    "name": "photo_rename",
    "description": "New names for photographs by the time they were taken; those of one second get -2, -3 and so on",
    "effects": ["read"],
    "dependencies": [],
}

ENDINGS = {".jpeg": ".jpg", ".tif": ".tiff"}


class Input(BaseModel):
    path: str = Field(description="Lines of a file name and the time it was taken, with a tab between them")
    prefix: str = ""


class Output(BaseModel):
    names: dict[str, str]
    clashes: int = Field(description="Files that needed a number")


def ending(name: str) -> str:
    found = PurePath(name).suffix.lower()
    return ENDINGS.get(found, found)


def free_name(stem: str, suffix: str, taken: set[str]) -> str:
    name, number = stem + suffix, 1
    if name in taken:
        number += 1
        name = f"{stem}-{number}{suffix}"
    return name


def run(input: Input) -> Output:
    names: dict[str, str] = {}
    taken: set[str] = set()
    clashes = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        old, stamp = line.split("\t")
        when = datetime.strptime(stamp.strip(), "%Y:%m:%d %H:%M:%S")
        stem = input.prefix + when.strftime("%Y%m%d_%H%M%S")
        new = free_name(stem, ending(old), taken)
        clashes += new != stem + ending(old)
        taken.add(new)
        names[old] = new
    return Output(names=names, clashes=clashes)
