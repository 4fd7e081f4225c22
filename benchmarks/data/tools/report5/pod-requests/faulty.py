"""Requests of the pods of a manifest."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "pod_requests",
    "description": "CPU in millicores and memory in MiB that the pods of a Kubernetes list ask for",
    "effects": ["read"],
    "dependencies": [],
}

UNITS = {"Ki": 1 / 1024, "Mi": 1.0, "Gi": 1024.0}


class Input(BaseModel):
    path: str = Field(description="Output of kubectl get pods -o json")
    namespace: str | None = None


class Output(BaseModel):
    cpu: dict[str, int]
    memory: dict[str, float]
    total_cpu: int


def millicores(text: str) -> int:
    """250m as 250, 1.5 as 1500."""
    return int(text[:-1]) if text.endswith("m") else round(float(text) * 1000)


def mebibytes(text: str) -> float:
    for unit, factor in UNITS.items():
        if text.endswith(unit):
            return float(text[: -len(unit)]) * factor
    return float(text) / 1024**2


def requested(container: dict[str, Any], what: str) -> str:
    return str(container.get("resources", {}).get("requests", {}).get(what, "0"))


def run(input: Input) -> Output:
    cpu: dict[str, int] = {}
    memory: dict[str, float] = {}
    for pod in json.loads(Path(input.path).read_text(encoding="utf-8"))["items"]:
        if input.namespace not in (None, pod["metadata"].get("namespace", "default")):
            continue
        name, spec = pod["metadata"]["name"], pod["spec"]
        first = spec.get("initContainers", [])
        needed = sum(millicores(requested(item, "cpu")) for item in spec["containers"])
        before = max((millicores(requested(item, "cpu")) for item in first), default=0)
        cpu[name] = needed + before
        memory[name] = round(sum(mebibytes(requested(item, "memory")) for item in spec["containers"]), 2)
    return Output(cpu=cpu, memory=memory, total_cpu=sum(cpu.values()))
