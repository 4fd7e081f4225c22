"""Levels of gauges, read side by side."""

import asyncio
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "gauge_levels",
    "description": "Water levels of gauges from their files, each with the backup file where the first one is not there or empty",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    gauges: list[str] = Field(description="Names of gauges; NAME.txt and NAME.bak hold one number a line")


class Output(BaseModel):
    levels: dict[str, float]
    silent: list[str]


async def numbers(path: Path) -> list[float]:
    await asyncio.sleep(0)
    if not path.exists():
        return []
    return [float(line) for line in path.read_text(encoding="utf-8").split()]


async def level(gauge: str) -> float | None:
    """The mean of what was read; None where nothing was."""
    found = await numbers(Path(f"{gauge}.txt"))
    if not found:
        found = await numbers(Path(f"{gauge}.bak"))
    return sum(found) / len(found) if found else None


async def all_levels(gauges: list[str]) -> dict[str, float | None]:
    found = await asyncio.gather(*(level(gauge) for gauge in gauges))
    return dict(zip(gauges, found, strict=True))


def run(input: Input) -> Output:
    found = asyncio.run(all_levels(input.gauges))
    return Output(
        levels={name: round(value, 2) for name, value in found.items() if value is not None},
        silent=sorted(name for name, value in found.items() if value is None),
    )
