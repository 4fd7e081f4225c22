"""Numbers for a box plot."""

from pydantic import BaseModel

TOOL = {
    "name": "box_plot",
    "description": "The five numbers of a box plot (least, quartiles as the medians of the lower and the upper half, greatest) and the outliers, more than one and a half box lengths beyond the box; with an odd number of values the middle one is in neither half",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    values: list[float]


class Output(BaseModel):
    five: list[float]
    spread: float
    outliers: list[float]


def median(ordered: list[float]) -> float:
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def run(input: Input) -> Output:
    """A single value is all five numbers; no values give no numbers."""
    ordered = sorted(input.values)
    count = len(ordered)
    if count < 2:
        return Output(five=ordered * 5, spread=0, outliers=[])
    lower = median(ordered[: count // 2])
    upper = median(ordered[(count + 1) // 2 :])
    spread = upper - lower
    reach = spread * 1.5
    outliers = [value for value in ordered if value < lower - reach or value > upper + reach]
    return Output(five=[ordered[0], lower, median(ordered), upper, ordered[-1]], spread=spread, outliers=outliers)
