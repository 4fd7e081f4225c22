"""Whether a text can be read anywhere in the box of a run."""

import os
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "box",
    "description": "Looks for a text in all that a run can read",
    "effects": ["read", "external"],
    "secrets": ["WIKI"],
}
PROCESS = ("environ", "cmdline", "mountinfo", "maps")  # of all that run in the box
FOLDERS = ("/run", "/tmp", "/etc", "/home", ".")


class Input(BaseModel):
    backwards: str  # the text, so that the question itself does not hold it


class Output(BaseModel):
    files: int
    found: list[str]


def run(input: Input) -> Output:
    wanted, files, found = input.backwards[::-1].encode(), 0, []
    for path in readable():
        try:
            data = path.read_bytes()
        except OSError:
            continue
        files += 1
        if wanted in data:
            found.append(str(path))
    return Output(files=files, found=found)


def readable() -> Iterator[Path]:
    """Plain files: what waits for a writer would never end."""
    for process in Path("/proc").glob("[0-9]*"):
        yield from (process / name for name in PROCESS)
    for place in FOLDERS:
        for folder, _, names in os.walk(place):
            yield from (path for name in names if (path := Path(folder, name)).is_file())
