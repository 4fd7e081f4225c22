"""Tubes for posters."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "poster_tubes",
    "description": "Tubes that orders of posters are sent in, where no tube holds posters of two customers",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    orders: dict[str, int] = Field(description="Posters of each customer")
    per_tube: int = Field(8, ge=1)


class Output(BaseModel):
    tubes: dict[str, int]
    total: int
    last: dict[str, int] = Field(description="posters in each customer's last tube")


def tubes_for(posters: int, per_tube: int) -> int:
    return posters // per_tube


def in_last(posters: int, per_tube: int) -> int:
    """Posters in the last tube; a full one where they fit exactly."""
    if posters == 0:
        return 0
    return posters % per_tube or per_tube


def run(input: Input) -> Output:
    tubes = {who: tubes_for(posters, input.per_tube) for who, posters in input.orders.items()}
    last = {who: in_last(posters, input.per_tube) for who, posters in input.orders.items()}
    return Output(tubes=tubes, total=sum(tubes.values()), last=last)
