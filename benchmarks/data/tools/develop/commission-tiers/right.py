"""Commission by marginal tiers."""

from pydantic import BaseModel

TOOL = {
    "name": "commission_tiers",
    "description": "Commission of each seller: each tier [up to, percent] applies to the part of the sales within it, the top percentage to the rest",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    sales: dict[str, int]
    tiers: list[tuple[int, int]]
    top_percent: int


class Output(BaseModel):
    commission: dict[str, float]
    best: str | None
    total: float


class Scale:
    """Percentages for parts of an amount."""

    def __init__(self, tiers: list[tuple[int, int]], top: int) -> None:
        self.tiers = sorted(tiers)
        self.top = top

    def of(self, amount: int) -> float:
        hundredths = 0
        below = 0
        for limit, percent in self.tiers:
            if amount <= limit:
                return (hundredths + (amount - below) * percent) / 100
            hundredths += (limit - below) * percent
            below = limit
        return (hundredths + (amount - below) * self.top) / 100


def run(input: Input) -> Output:
    scale = Scale(input.tiers, input.top_percent)
    commission = {name: scale.of(amount) for name, amount in input.sales.items()}
    best = min(commission, key=lambda name: (-commission[name], name), default=None)
    return Output(commission=commission, best=best, total=sum(commission.values()))
