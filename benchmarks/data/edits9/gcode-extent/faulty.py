"""How far a milling program reaches."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "gcode_extent",
    "description": "How far the moves of a G-code program reach; after G91 coordinates are added to where the tool is, until G90",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    width: float = Field(description="between the lowest and the highest x, in mm")
    height: float
    moves: int


def run(input: Input) -> Output:
    x = y = 0.0
    xs, ys = [x], [y]
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        words = line.partition(";")[0].split()
        if not words or words[0] not in ("G0", "G1"):
            continue
        for word in words[1:]:
            if word[0] == "X":
                x = float(word[1:])
            elif word[0] == "Y":
                y = float(word[1:])
        xs.append(x)
        ys.append(y)
    return Output(width=round(max(xs) - min(xs), 3), height=round(max(ys) - min(ys), 3), moves=len(xs) - 1)
