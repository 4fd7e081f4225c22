"""Cinema tickets: by age, cheaper on Tuesdays, dearer in 3D."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "cinema_tickets",
    "description": "Price of tickets for a group",
    "effects": ["pure"],
    "dependencies": [],
}

PRICES = {"child": 700, "adult": 1100, "senior": 850}  # cents


class Input(BaseModel):
    ages: list[int]
    weekday: str = Field(description="mon, tue, ... sun")
    three_d: bool = False


class Output(BaseModel):
    groups: dict[str, int]
    cents: int


def group(age: int) -> str:
    """Children are under 12, seniors 65 and older."""
    if age < 12:
        return "child"
    if age > 65:
        return "senior"
    return "adult"


def run(input: Input) -> Output:
    groups: dict[str, int] = {}
    cents = 0
    for age in input.ages:
        name = group(age)
        groups[name] = groups.get(name, 0) + 1
        price = PRICES[name]
        if input.weekday == "tue":
            price -= 200
        if input.three_d:
            price += 300
        cents += price
    return Output(groups=groups, cents=cents)
