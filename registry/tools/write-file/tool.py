"""Writes a text file, or adds to its end."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "write_file",
    "description": "Write a text file in the workspace, whole; or add text to its end",
    "effects": ["write"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The file, relative to the workspace; folders are made")
    text: str = Field(description="Exactly what is to stand there, with a line end where one belongs")
    append: bool = Field(False, description="Add to the end instead of replacing the whole")


class Output(BaseModel):
    path: str
    bytes: int = Field(description="The size that the file has now")
    replaced: bool = Field(description="Whether a file of this name was there before")


def run(input: Input) -> Output:
    """Raises ValueError for a place outside the workspace."""
    path = Path(input.path).resolve()
    if not path.is_relative_to(Path.cwd().resolve()):
        raise ValueError(f"{input.path} lies outside the workspace: give a path relative to it")
    if path.is_dir():
        raise IsADirectoryError(f"{input.path} is a folder: give the name of a file in it")
    replaced = path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a" if input.append else "w", encoding="utf-8", newline="") as file:
        file.write(input.text)
    return Output(path=input.path, bytes=path.stat().st_size, replaced=replaced)
