"""Divides the costs of a house."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "cost_shares",
    "description": "A cost divided among the active members of a house by their parts, each rounded to cents; what is left by rounding (cost less the rounded shares, or the whole cost where nobody is active) is given as rest",
    "effects": ["pure"],
    "dependencies": [],
}


class Member(BaseModel):
    name: str
    parts: float = Field(gt=0)
    active: bool = True


class Input(BaseModel):
    cost: float = Field(ge=0)
    members: list[Member]


class Output(BaseModel):
    shares: dict[str, float]
    rest: float
    parts: float


def run(input: Input) -> Output:
    names = [member.name for member in input.members]
    if len(set(names)) < len(names):
        raise ValueError("two members have the same name")
    active = [member for member in input.members if member.active]
    parts = sum(member.parts for member in active)
    shares: dict[str, float] = {}
    for member in active:
        shares[member.name] = round(input.cost * member.parts / parts, 2)
    return Output(
        shares=shares,
        rest=round(input.cost - sum(shares.values()), 2),
        parts=parts,
    )
