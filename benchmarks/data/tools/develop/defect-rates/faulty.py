"""Computes how much of what machines made was defective."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "defect_rates",
    "description": "The share of defective pieces of each machine and of all together, in percent with one decimal (none where nothing was made), the machine with the highest share (the first of several), and the machines that stood idle, which made nothing",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: machine;pieces made;defective ones among them")


class Output(BaseModel):
    rates: dict[str, float | None]
    overall: float | None
    worst: str | None
    idle: list[str]


def rate(made: int, defective: int) -> float | None:
    return round(100 * defective / made, 1)


def run(input: Input) -> Output:
    """Machines in the order in which they are first named; one may have several lines."""
    made: dict[str, int] = {}
    defective: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        machine, pieces, bad = (part.strip() for part in line.split(";"))
        made[machine] = made.get(machine, 0) + int(pieces)
        defective[machine] = defective.get(machine, 0) + int(bad)
    rates = {machine: rate(made[machine], defective[machine]) for machine in made}
    known = [machine for machine in rates if rates[machine] is not None]
    worst = max(known, key=lambda machine: rates[machine], default=None)
    idle = [machine for machine in made if made[machine] == 0]
    overall = rate(sum(made.values()), sum(defective.values()))
    return Output(rates=rates, overall=overall, worst=worst, idle=idle)
