"""Envelopes of a household's budget."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "envelope_budget",
    "description": "Balances of budget envelopes after each month: the plan is put in each month, what is left over or overspent is carried on; and the envelopes below zero at the end",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    plan: dict[str, int]
    months: list[dict[str, int]] = Field(description="what was spent")


class Output(BaseModel):
    balances: list[dict[str, int]]
    overspent: list[str]
    saved: int


class Envelopes:
    def __init__(self, plan: dict[str, int]) -> None:
        self.plan = plan
        self.balance = dict.fromkeys(plan, 0)

    def fill(self) -> None:
        for name, amount in self.plan.items():
            self.balance[name] += amount

    def spend(self, name: str, amount: int) -> None:
        if name not in self.balance:
            raise ValueError(f"there is no envelope for {name}")
        self.balance[name] -= amount


def run(input: Input) -> Output:
    envelopes = Envelopes(input.plan)
    balances = []
    for spent in input.months:
        envelopes.fill()
        for name, amount in spent.items():
            envelopes.spend(name, amount)
        balances.append(dict(envelopes.balance))
    overspent = sorted(name for name, left in envelopes.balance.items() if left < 0)
    return Output(balances=balances, overspent=overspent, saved=sum(envelopes.balance.values()))
