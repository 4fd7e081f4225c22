"""Measured values that are too high."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "alert_limits",
    "description": "Which measured values of machines are above their limit: that of the machine, else that of the kind of value, else the one for all; a limit of 0 allows nothing above 0; names the machines with the most alerts",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    machines: dict[str, dict[str, float]] = {}
    kinds: dict[str, float] = {}
    usual: float = 100


class Output(BaseModel):
    alerts: list[str]
    counts: dict[str, int]
    worst: list[str]


def limit_of(machine: str, kind: str, input: Input) -> float:
    own = input.machines.get(machine, {})
    return own.get(kind) or input.kinds.get(kind) or input.usual


def run(input: Input) -> Output:
    """Lines: machine, kind, value. An alert is written as machine/kind value > limit."""
    alerts = []
    counts: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        fields = line.split()
        if len(fields) != 3:
            continue
        machine, kind, value = fields[0], fields[1], float(fields[2])
        counts.setdefault(machine, 0)
        limit = limit_of(machine, kind, input)
        if value > limit:
            alerts.append(f"{machine}/{kind} {value:g} > {limit:g}")
            counts[machine] += 1
    most = max(counts.values(), default=0)
    worst = sorted(machine for machine, count in counts.items() if count == most and most)
    return Output(alerts=alerts, counts=counts, worst=worst)
