"""The folder that files share."""

from pydantic import BaseModel

TOOL = {
    "name": "shared_folder",
    "description": "The deepest folder that all the given files (paths with slashes) lie in, and the paths of the files from there",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    paths: list[str]


class Output(BaseModel):
    folder: str
    below: list[str]
    deepest: int


def folders(path: str) -> list[str]:
    """Without the file's name; doubled slashes and single dots do not count."""
    parts = path.split("/")[:-1]
    start = [""] if path.startswith("/") else []
    return start + [part for part in parts if part not in ("", ".")]


def run(input: Input) -> Output:
    """An empty folder means the current one; mixed with absolute paths it shares nothing."""
    lists = [folders(path) for path in input.paths]
    shared = []
    for names in zip(*lists):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    below = []
    for path, parts in zip(input.paths, lists):
        rest = parts[len(shared) :]
        below.append("/".join([*rest, path.split("/")[-1]]))
    folder = "/".join(shared)
    if shared == [""]:
        folder = "/"
    return Output(folder=folder, below=below, deepest=max((name.count("/") for name in below), default=0))
