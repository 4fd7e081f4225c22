"""Counts the species of a bird list."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "bird_list",
    "description": "How many species of birds were seen for the first time on each day on which any bird was seen (small and large letters make no difference), how many species there are in all, how many sightings, and at which places species were seen first, with their numbers",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: day;species;place, in the order of the days")


class Output(BaseModel):
    new: dict[str, int]
    places: dict[str, int]
    species: int
    sightings: int


def run(input: Input) -> Output:
    """Days on which only known species were seen have a 0."""
    new: dict[str, int] = {}
    places: dict[str, int] = {}
    sightings = 0
    previous = None
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        day, species, place = (part.strip() for part in line.split(";"))
        sightings += 1
        new.setdefault(day, 0)
        if species.lower() == previous:
            continue
        previous = species.lower()
        new[day] += 1
        places[place] = places.get(place, 0) + 1
    return Output(new=new, places=places, species=sum(new.values()), sightings=sightings)
