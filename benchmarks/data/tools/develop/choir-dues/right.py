"""Works out what the members of a choir still owe."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "choir_dues",
    "description": "What each member of a choir has to pay for the year: the member's own due where one is given (0 for honorary members), otherwise the standard one; what is still open of it, for those who have paid less; and how much is due and open together",
    "effects": ["pure"],
    "dependencies": [],
}


class Member(BaseModel):
    name: str
    due: float | None = Field(None, description="The member's own due, where it is not the standard one")
    paid: float = 0


class Input(BaseModel):
    standard: float = Field(description="The due of members who have none of their own")
    members: list[Member]


class Output(BaseModel):
    dues: dict[str, float]
    open: dict[str, float]
    total_due: float
    total_open: float


def run(input: Input) -> Output:
    """Members in the order in which they are given; who has paid too much gets nothing back."""
    dues: dict[str, float] = {}
    still_open: dict[str, float] = {}
    for member in input.members:
        due = input.standard if member.due is None else member.due
        dues[member.name] = due
        rest = round(due - member.paid, 2)
        if rest > 0:
            still_open[member.name] = rest
    return Output(
        dues=dues,
        open=still_open,
        total_due=round(sum(dues.values()), 2),
        total_open=round(sum(still_open.values()), 2),
    )
