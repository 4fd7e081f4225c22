"""Memory of pods."""

import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

from _quantity import split_quantity
from pydantic import BaseModel, Field

TOOL = {
    "name": "pod_memory",
    "description": "How much memory and CPU the containers of each pod ask for",
    "effects": ["read"],
    "dependencies": [],
}


UNITS = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
}


class Input(BaseModel):
    path: str = Field(description="JSON list of containers: pod, memory, cpu, such as 128Mi and 250m")


class Output(BaseModel):
    bytes: dict[str, int]
    cpus: float


def amount(text: str) -> Decimal:
    """A quantity in its smallest unit."""
    number, unit = split_quantity(text)
    return number * UNITS[unit]


def run(input: Input) -> Output:
    found: defaultdict[str, Decimal] = defaultdict(Decimal)
    cpus = Decimal(0)
    for container in json.loads(Path(input.path).read_text(encoding="utf-8")):
        found[container["pod"]] += amount(container["memory"])
        cpus += amount(container.get("cpu", "0"))
    return Output(bytes={pod: int(value) for pod, value in sorted(found.items())}, cpus=float(cpus))
