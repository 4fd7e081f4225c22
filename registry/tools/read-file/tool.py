"""Reads a text file, or some of its lines."""

from io import StringIO
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "read_file",
    "description": "Read a text file of the workspace, or the part of it between two lines",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The file, relative to the workspace")
    first: int = Field(1, ge=1, description="The first line that is wanted")
    last: int | None = Field(None, ge=1, description="The last line that is wanted; without it, to the end")


class Output(BaseModel):
    lines: int = Field(description="How many the whole file has")
    first: int
    last: int = Field(description="0 when there is nothing to show")
    text: str


def run(input: Input) -> Output:
    """Raises FileNotFoundError with what lies beside it, and ValueError for what is no text."""
    lines = StringIO(text_of(input.path)).readlines()  # a form feed ends no line, as in other tools
    if input.first > max(1, len(lines)):
        raise ValueError(f"{input.path} has {len(lines)} lines, so none has the number {input.first}")
    shown = lines[input.first - 1 : input.last]
    return Output(
        lines=len(lines),
        first=input.first,
        last=input.first + len(shown) - 1 if shown else 0,
        text="".join(shown),
    )


def text_of(name: str) -> str:
    """The file's text; a link that leads out of the workspace is not followed."""
    path = Path(name).resolve()
    if not path.is_relative_to(Path.cwd().resolve()):
        raise ValueError(f"{name} lies outside the workspace: give a path relative to it")
    if path.is_dir():
        raise IsADirectoryError(f"{name} is a folder: list_files shows what is in it")
    if not path.is_file():
        beside = sorted(entry.name for entry in path.parent.iterdir())[:20] if path.parent.is_dir() else []
        raise FileNotFoundError(f"there is no file {name}; beside it: {', '.join(beside) or 'nothing'}")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is no UTF-8 text (byte {error.start}): read it with python") from None
