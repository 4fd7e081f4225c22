"""How the sales of a shop grow from month to month."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "sales_growth",
    "description": "By how many percent the sales of each month differ from those of the month before (null for the first, and where there were none before), the month that grew most, and the sum",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: YYYY-MM,amount; in the order of time")


class Output(BaseModel):
    growth: dict[str, float | None]
    best: str | None
    total: float


def run(input: Input) -> Output:
    growth: dict[str, float | None] = {}
    best: str | None = None
    total = 0.0
    before: float | None = None
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        month, amount = line.split(",")
        sales = float(amount)
        change = round((sales - before) / before * 100, 1) if before else None
        growth[month] = change
        if change is not None and (best is None or change > (growth[best] or 0.0)):
            best = month
        total = round(total + sales, 2)
        before = sales
    return Output(growth=growth, best=best, total=total)
