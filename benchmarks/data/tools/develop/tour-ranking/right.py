"""Overall ranking of a cycling tour."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "tour_ranking",
    "description": "The overall ranking of a cycling tour, with seconds of bonus for the first three of a stage",
    "effects": ["read"],
    "dependencies": [],
}

BONUS = [10, 6, 4]


class Input(BaseModel):
    path: str = Field(description="CSV with stage, rider and seconds (empty for who gave up), the first of a stage first")


class Output(BaseModel):
    ranking: list[str]
    gaps: list[int] = Field(description="Seconds behind the leader")
    stages: dict[str, str] = Field(description="Who won each stage")


def run(input: Input) -> Output:
    """Equal times are ranked by name; who gives up is out of the ranking, but keeps the stages won."""
    times: dict[str, int] = {}
    places: dict[str, int] = {}
    stages: dict[str, str] = {}
    gone: set[str] = set()
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            stage, rider = row["stage"], row["rider"]
            if not row["seconds"].strip():
                gone.add(rider)
                continue
            place = places.get(stage, 0)
            places[stage] = place + 1
            stages.setdefault(stage, rider)
            bonus = BONUS[place] if place < len(BONUS) else 0
            times[rider] = times.get(rider, 0) + int(row["seconds"]) - bonus
    ranking = sorted((rider for rider in times if rider not in gone), key=lambda rider: (times[rider], rider))
    gaps = [times[rider] - times[ranking[0]] for rider in ranking]
    return Output(ranking=ranking, gaps=gaps, stages=stages)
