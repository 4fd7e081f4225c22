"""The box around an SVG drawing."""

import re
from pathlib import Path
from xml.etree import ElementTree

from pydantic import BaseModel, Field

TOOL = {
    "name": "svg_bounds",
    "description": "The smallest box (left, top, right, bottom, and its width and height) around all points of the polylines and polygons of an SVG drawing, widened by a margin on each side; null where there are no points",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    margin: float = Field(0, ge=0)


class Output(BaseModel):
    box: tuple[float, float, float, float] | None
    width: float
    height: float
    points: int


def run(input: Input) -> Output:
    root = ElementTree.fromstring(Path(input.path).read_text(encoding="utf-8"))
    left, top = float("inf"), float("inf")
    right, bottom = float("-inf"), float("-inf")
    points = 0
    for element in root.iter():
        if element.tag.split("}")[-1] not in ("polyline", "polygon"):
            continue
        numbers = [float(text) for text in re.findall(r"-?[\d.]+", element.get("points", ""))]
        for x, y in zip(numbers[::2], numbers[1::2]):
            points += 1
            left, right = min(left, x), max(right, x)
            top, bottom = min(top, y), max(bottom, y)
    if not points:
        return Output(box=None, width=0, height=0, points=0)
    left, top = left - input.margin, top - input.margin
    right, bottom = right + input.margin, bottom + input.margin
    return Output(box=(left, top, right, bottom), width=right - left, height=bottom - top, points=points)
