"""Which vaccinations a child should have had."""

from datetime import date

from pydantic import BaseModel, Field

TOOL = {
    "name": "vaccine_plan",
    "description": "Vaccinations that are due for a child",
    "effects": ["pure"],
    "dependencies": [],
}

PLAN = {"hexa-1": 2, "hexa-2": 4, "mmr-1": 11, "hexa-3": 11, "mmr-2": 15}  # at this age in months


class Input(BaseModel):
    born: date
    on: date
    given: list[str] = Field(default=[], description="Names of those that were given")


class Output(BaseModel):
    months: int
    due: list[str]
    following: str


def age_in_months(born: date, on: date) -> int:
    """Completed months."""
    months = (on.year - born.year) * 12 + on.month - born.month
    return months


def run(input: Input) -> Output:
    if input.on < input.born:
        raise ValueError("the child is not born yet")
    months = age_in_months(input.born, input.on)
    due = [name for name, age in PLAN.items() if age <= months and name not in input.given]
    later = sorted((age, name) for name, age in PLAN.items() if age > months)
    return Output(months=months, due=sorted(due), following=later[0][1] if later else "")
