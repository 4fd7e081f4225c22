"""Sizes of folders with all below them."""

from pathlib import Path, PurePosixPath

from pydantic import BaseModel

TOOL = {
    "name": "tree_sizes",
    "description": "The size of each folder with everything below it, from a list of files with their sizes, and the largest file; the folder of all is a point",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    least: int = 0


class Output(BaseModel):
    folders: dict[str, int]
    largest: str | None
    files: int


def run(input: Input) -> Output:
    """Lines: size, path. Folders of the least size or more by name; of files of the same size the first is the largest."""
    folders: dict[str, int] = {}
    largest, most = None, -1
    files = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        text, name = line.strip().split(maxsplit=1)
        size = int(text)
        file = PurePosixPath(name)
        files += 1
        if size > most:
            largest, most = str(file), size
        for folder in file.parents:
            folders[str(folder)] = folders.get(str(folder), 0) + size
    return Output(
        folders={name: size for name, size in sorted(folders.items()) if size >= input.least},
        largest=largest,
        files=files,
    )
