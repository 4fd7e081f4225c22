"""How much a distribution installed, by its RECORD."""

from _record import items
from pydantic import BaseModel, Field

TOOL = {
    "name": "record_sizes",
    "description": "Count the files of a RECORD and add up their sizes, in all and by top directory",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The RECORD file, in the workspace")


class Directory(BaseModel):
    name: str = Field(description='"." for files at the top, ".." for those outside site-packages')
    files: int
    size: int


class Output(BaseModel):
    files: int
    size: int = Field(description="Bytes of all files whose size is recorded")
    unrecorded: int = Field(description="Files without a recorded size, such as compiled ones")
    directories: list[Directory] = Field(description="Largest first, then by name")


def run(input: Input) -> Output:
    """Sizes are those written at installation, not those on disk."""
    listed = list(items(input.path))
    counts: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for item in listed:
        top, slash, _ = item.path.partition("/")
        name = top if slash else "."
        counts[name] = counts.get(name, 0) + 1
        sizes[name] = sizes.get(name, 0) + (item.size or 0)
    return Output(
        files=len(listed),
        size=sum(sizes.values()),
        unrecorded=sum(item.size is None for item in listed),
        directories=[
            Directory(name=name, files=counts[name], size=sizes[name])
            for name in sorted(counts, key=lambda name: (-sizes[name], name))
        ],
    )
