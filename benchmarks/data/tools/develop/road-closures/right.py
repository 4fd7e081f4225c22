"""Joins the closed stretches of roads."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "road_closures",
    "description": "Which stretches of each road are closed, from the lowest kilometre to the highest, where closures that overlap or touch make one stretch; how many kilometres of each road are closed; and the longest closed stretch of all (the first of several)",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: A1 3.5-7, with the kilometres in either direction")


class Output(BaseModel):
    closed: dict[str, list[list[float]]]
    kilometres: dict[str, float]
    longest: str | None


def join(stretches: list[list[float]]) -> list[list[float]]:
    merged: list[list[float]] = []
    for start, end in sorted(stretches):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def run(input: Input) -> Output:
    """Roads in the order of the alphabet."""
    stretches: dict[str, list[list[float]]] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        road, places = line.split()
        stretches.setdefault(road, []).append(sorted(float(place) for place in places.split("-")))
    closed = {road: join(stretches[road]) for road in sorted(stretches)}
    kilometres = {}
    longest, most = None, 0.0
    for road, parts in closed.items():
        kilometres[road] = round(sum(end - start for start, end in parts), 1)
        for start, end in parts:
            if end - start > most:
                longest, most = f"{road} {start:g}-{end:g}", end - start
    return Output(closed=closed, kilometres=kilometres, longest=longest)
