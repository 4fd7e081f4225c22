"""Lists the files below a folder."""

import fnmatch
import os
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "list_files",
    "description": "List the files below a folder of the workspace with their sizes, sorted by path",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(".", description="The folder, relative to the workspace")
    pattern: str = Field("*", description="Names with wildcards, such as *.csv, or paths such as data/*.csv")
    limit: int = Field(500, ge=1, le=5_000, description="At most so many")


class File(BaseModel):
    path: str = Field(description="Relative to the workspace")
    bytes: int


class Output(BaseModel):
    files: list[File]
    left_out: int = Field(description="How many more there are")


def run(input: Input) -> Output:
    """Links are named and not followed."""
    folder, root = Path(input.path).resolve(), Path.cwd().resolve()
    if not folder.is_relative_to(root):
        raise ValueError(f"{input.path} lies outside the workspace: give a path relative to it")
    if not folder.is_dir():
        raise NotADirectoryError(f"{input.path} is no folder")
    found = []
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in [*names, *(name for name in folders if (Path(place) / name).is_symlink())]:
            path = (Path(place) / name).relative_to(root).as_posix()
            if fits(path, input.pattern):
                found.append(path)
    found.sort()
    files = [File(path=shown(path), bytes=os.lstat(path).st_size) for path in found[: input.limit]]
    return Output(files=files, left_out=len(found) - len(files))


def shown(path: str) -> str:
    """A name that is no UTF-8 would keep all others from being told."""
    return os.fsencode(path).decode("utf-8", "replace")


def fits(path: str, pattern: str) -> bool:
    """Whether the path below the workspace, or its last part, does; ``**/`` may stand for no folder."""
    pattern = pattern.removeprefix("./")
    ways = {pattern, pattern.removeprefix("**/"), pattern.replace("/**/", "/")}
    return any(fnmatch.fnmatch(part, way) for part in (path, path.rpartition("/")[2]) for way in ways)
