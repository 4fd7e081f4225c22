"""Who comes to the last round."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "contest_shortlist",
    "description": "Who comes to the last round of a contest with a number of places, from the points that judges gave (several for each entry, which are added up): the entries with the most points, and all that have as many as the last of them; tells the points that were needed and who missed them by one point",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    places: int


class Output(BaseModel):
    chosen: list[str]
    needed: int | None
    missed: list[str]


def run(input: Input) -> Output:
    """Lines: entry;points. Of entries with as many points the order is that of the alphabet."""
    points: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            entry, given = line.split(";")
            points[entry.strip()] = points.get(entry.strip(), 0) + int(given)
    ranked = sorted(points, key=lambda entry: (-points[entry], entry))
    chosen = ranked[: input.places]
    needed = points[chosen[-1]] if chosen else None
    return Output(
        chosen=chosen,
        needed=needed,
        missed=[entry for entry in ranked if needed is not None and points[entry] == needed - 1],
    )
