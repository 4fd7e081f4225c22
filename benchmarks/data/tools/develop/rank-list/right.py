"""Ranks of a competition."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "rank_list",
    "description": "Ranks by points, the most first (or the fewest): who has equal points shares a rank, and the ranks after it leave as many numbers out (1, 2, 2, 4); in the order of rank and name",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    points: dict[str, float]
    low_wins: bool = Field(False, description="As in golf")


class Place(BaseModel):
    rank: int
    name: str
    points: float


class Output(BaseModel):
    places: list[Place]
    medals: list[str] = Field(description="Everybody with a rank up to 3")


def run(input: Input) -> Output:
    sign = 1 if input.low_wins else -1
    order = sorted(input.points.items(), key=lambda entry: (sign * entry[1], entry[0]))
    places: list[Place] = []
    rank, previous = 0, None
    for position, (name, points) in enumerate(order, start=1):
        if points != previous:
            rank, previous = position, points
        places.append(Place(rank=rank, name=name, points=points))
    return Output(places=places, medals=[place.name for place in places if place.rank <= 3])
