"""Sums up a year's donations for the receipts."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "donation_receipts",
    "description": "For each donor the sum of all gifts, how many there were, and the days of the first and the last one; the donors whose sum is at least a given amount (they get a letter of thanks); and the sum of everything",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: day;donor;amount, in the order of the days")
    thanks_from: float = 100


class Receipt(BaseModel):
    total: float
    gifts: int
    first: str
    last: str


class Output(BaseModel):
    receipts: dict[str, Receipt]
    thanks: list[str]
    sum: float


def run(input: Input) -> Output:
    """Donors in the order of their first gifts."""
    receipts: dict[str, Receipt] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        day, donor, amount = (part.strip() for part in line.split(";"))
        receipt = receipts.get(donor)
        if receipt is None:
            receipts[donor] = Receipt(total=float(amount), gifts=1, first=day, last=day)
            continue
        receipt.total = round(receipt.total + float(amount), 2)
        receipt.gifts += 1
        receipt.last = day
    thanks = [donor for donor, receipt in receipts.items() if receipt.total >= input.thanks_from]
    total = round(sum(receipt.total for receipt in receipts.values()), 2)
    return Output(receipts=receipts, thanks=thanks, sum=total)
