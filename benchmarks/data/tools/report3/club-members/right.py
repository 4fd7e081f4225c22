"""Members of a club by town."""

from _sheet import rows
from pydantic import BaseModel, Field

TOOL = {
    "name": "club_members",
    "description": "Members of a club by their town, and the mean year in which they joined, from a CSV file with headers",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with the headers name, town and joined, in any order")
    since: int = Field(0, description="Only those who joined in this year or later")


class Output(BaseModel):
    towns: dict[str, list[str]]
    mean_year: float | None


def run(input: Input) -> Output:
    towns: dict[str, list[str]] = {}
    years = []
    for row in rows(input.path):
        year = int(row["joined"])
        if year < input.since:
            continue
        years.append(year)
        towns.setdefault(row["town"] or "?", []).append(row["name"])
    mean = round(sum(years) / len(years), 1) if years else None
    return Output(towns={town: sorted(names) for town, names in sorted(towns.items())}, mean_year=mean)
