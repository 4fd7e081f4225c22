"""Changes in a list of weights."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "weight_change",
    "description": "The largest and the smallest change between one week's weight and the next (gains are positive, losses negative), the weeks in which they fell, and the weeks with a new lowest weight",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    largest: float
    largest_in: str
    smallest: float
    smallest_in: str
    lowest_in: list[str]


def run(input: Input) -> Output:
    """Lines: week, kilograms. A change belongs to the later week; of equal ones the first counts."""
    rows = [line.split() for line in Path(input.path).read_text(encoding="utf-8").splitlines() if line.strip()]
    weights = [float(row[1]) for row in rows]
    changes = [round(after - before, 1) for before, after in zip(weights, weights[1:])]
    if not changes:
        return Output(largest=0, largest_in="", smallest=0, smallest_in="", lowest_in=[])
    largest = smallest = 0.0
    largest_at = smallest_at = 0
    lowest = weights[0]
    lowest_in = []
    for place, change in enumerate(changes):
        if change > largest:
            largest, largest_at = change, place
        if change < smallest:
            smallest, smallest_at = change, place
        if weights[place + 1] < lowest:
            lowest = weights[place + 1]
            lowest_in.append(rows[place + 1][0])
    return Output(
        largest=largest,
        largest_in=rows[largest_at + 1][0],
        smallest=smallest,
        smallest_in=rows[smallest_at + 1][0],
        lowest_in=lowest_in,
    )
