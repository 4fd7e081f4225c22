"""Payments that settle a group's balances."""

import heapq

from pydantic import BaseModel

TOOL = {
    "name": "debt_settle",
    "description": "Settle balances (positive: is owed, negative: owes): again and again the one who owes most pays the one who is owed most; ties by name",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    balances: dict[str, int]


class Output(BaseModel):
    payments: list[tuple[str, str, int]]
    moved: int


def run(input: Input) -> Output:
    """Each payment is (from, to, amount)."""
    if sum(input.balances.values()):
        raise ValueError("the balances do not add up to 0")
    creditors = [(-amount, name) for name, amount in input.balances.items() if amount > 0]
    debtors = [(amount, name) for name, amount in input.balances.items() if amount < 0]
    heapq.heapify(creditors)
    heapq.heapify(debtors)
    payments = []
    while debtors and creditors:
        owed, creditor = heapq.heappop(creditors)
        owing, debtor = heapq.heappop(debtors)
        paid = min(-owed, -owing)
        payments.append((debtor, creditor, paid))
        if -owed > paid:
            heapq.heappush(creditors, (owed + paid, creditor))
        if -owing > paid:
            heapq.heappush(debtors, (owing + paid, debtor))
    return Output(payments=payments, moved=sum(amount for _, _, amount in payments))
