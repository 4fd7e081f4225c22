"""Cut a picture to what is on it."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "sprite_crop",
    "description": "The smallest rectangle of a picture in characters that holds all set points (#): its place, its size and the picture cut to it; of a picture without set points nothing",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    left: int
    top: int
    size: list[int]
    picture: list[str]
    points: int


def run(input: Input) -> Output:
    """Lines may differ in length; what is missing counts as not set."""
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    places = [
        (x, y) for y, line in enumerate(lines) for x, character in enumerate(line) if character == "#"
    ]
    if not places:
        return Output(left=0, top=0, size=[0, 0], picture=[], points=0)
    left = min(x for x, _ in places)
    right = max(x for x, _ in places)
    top = min(y for _, y in places)
    bottom = max(y for _, y in places)
    width = right - left + 1
    height = bottom - top + 1
    picture = [line[left : right + 1].ljust(width, ".") for line in lines[top : bottom + 1]]
    return Output(left=left, top=top, size=[width, height], picture=picture, points=len(places))
