"""Balance of flexible working hours."""

from pydantic import BaseModel

TOOL = {
    "name": "flex_balance",
    "description": "The balance of flexible hours after each day: the balance before plus the day's hours less the target, all written h:mm and with a minus in front of the whole where negative (-0:45, -1:30)",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    target: str
    days: list[str]
    before: str = "0:00"


class Output(BaseModel):
    balances: list[str]
    lowest: str
    highest: str


def minutes(text: str) -> int:
    sign = -1 if text.strip().startswith("-") else 1
    hours, rest = text.strip().lstrip("+-").split(":")
    return sign * (int(hours) * 60 + int(rest))


def shown(balance: int) -> str:
    hours, rest = divmod(balance, 60)
    return f"{hours}:{rest:02d}"


def run(input: Input) -> Output:
    target = minutes(input.target)
    balance = minutes(input.before)
    balances = []
    for day in input.days:
        balance += minutes(day) - target
        balances.append(balance)
    every = balances or [balance]
    return Output(
        balances=[shown(value) for value in balances],
        lowest=shown(min(every)),
        highest=shown(max(every)),
    )
