"""Works out what the readings of meters cost."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "meter_usage",
    "description": "How much each meter has counted between two readings of its five-digit counter (which goes on at 00000 after 99999), what that costs in full cents, and what all of it costs together",
    "effects": ["read"],
    "dependencies": [],
}
DIGITS = 5


class Input(BaseModel):
    path: str = Field(description="Lines of the form: meter;old reading;new reading")
    price: float = Field(ge=0, description="Price of one unit")


class Output(BaseModel):
    used: dict[str, int]
    cost: dict[str, float]
    total: float


def read(path: str) -> list[tuple[str, int, int]]:
    readings = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        meter, old, new = line.split(";")
        readings.append((meter.strip(), int(old), int(new)))
    return readings


def run(input: Input) -> Output:
    """Meters in the order in which they first occur; the uses of one that occurs twice are added."""
    used: dict[str, int] = {}
    for meter, old, new in read(input.path):
        used[meter] = used.get(meter, 0) + new - old
    cost = {meter: round(units * input.price, 2) for meter, units in used.items()}
    return Output(used=used, cost=cost, total=round(sum(cost.values()), 2))
