"""Area of a plot by the shoelace formula."""

from math import hypot

from pydantic import BaseModel, Field

TOOL = {
    "name": "plot_area",
    "description": "Area and fence of a plot of land",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    points: list[tuple[float, float]] = Field(min_length=3, description="Corners in order, in metres")


class Output(BaseModel):
    area: float
    fence: float
    corners: int


def edges(points: list[tuple[float, float]]) -> list[tuple[float, float, float, float]]:
    """Start and end of each side; the last leads back to the first corner."""
    following = points[1:] + points[:1]
    return [(x, y, nx, ny) for (x, y), (nx, ny) in zip(points, following, strict=True)]


def run(input: Input) -> Output:
    twice = 0.0
    fence = 0.0
    for x, y, nx, ny in edges(input.points):
        twice += x * ny - nx * y
        fence += hypot(nx - x, ny - y)
    return Output(area=abs(twice) / 2, fence=round(fence, 2), corners=len(input.points))
