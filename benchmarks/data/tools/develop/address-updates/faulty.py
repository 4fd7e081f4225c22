"""Finds the newest addresses of customers."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "address_updates",
    "description": "The newest address of each customer by notices of moving, which lie in any order and of which the one with the latest day counts (of those of one day the last); how many live in each town, and who moved more than once",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: customer;YYYY-MM-DD;street;town")


class Output(BaseModel):
    addresses: dict[str, str]
    towns: dict[str, int]
    often: list[str]


def run(input: Input) -> Output:
    newest: dict[str, tuple[str, str]] = {}
    notices: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        customer, _, street, town = (part.strip() for part in line.split(";"))
        notices[customer] = notices.get(customer, 0) + 1
        newest[customer] = (street, town)
    addresses = {}
    towns: dict[str, int] = {}
    for customer, (street, town) in sorted(newest.items()):
        addresses[customer] = f"{street}, {town}"
        towns[town] = towns.get(town, 0) + 1
    often = sorted(customer for customer, number in notices.items() if number > 1)
    return Output(addresses=addresses, towns=towns, often=often)
