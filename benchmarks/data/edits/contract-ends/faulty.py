"""Works out when contracts end."""

from datetime import date

from pydantic import BaseModel, Field

TOOL = {
    "name": "contract_ends",
    "description": "The day on which each contract ends, so many months after its start (on the last day of the month where that has no such day), and the names of those that end on or before a given day, the first to end first",
    "effects": ["pure"],
    "dependencies": [],
}


class Contract(BaseModel):
    name: str
    start: date
    months: int = Field(ge=1)


class Input(BaseModel):
    contracts: list[Contract]
    until: date | None = Field(None, description="Without it no contract is named as ending")


class Output(BaseModel):
    ends: dict[str, date]
    ending: list[str]


def add_months(day: date, months: int) -> date:
    month = day.month - 1 + months
    return day.replace(year=day.year + month // 12, month=month % 12 + 1)


def run(input: Input) -> Output:
    """Ends in the order of the contracts."""
    ends: dict[str, date] = {}
    for contract in input.contracts:
        ends[contract.name] = add_months(contract.start, contract.months)
    ending = []
    if input.until is not None:
        ending = [name for name, end in ends.items() if end <= input.until]
    return Output(ends=ends, ending=sorted(ending, key=lambda name: ends[name]))
