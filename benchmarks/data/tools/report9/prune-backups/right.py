"""Which backups stay."""

from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "prune_backups",
    "description": "Keep the newest backups of each kind in backups.txt, and write the names of the others to pruned.txt",
    "effects": ["read", "write"],
    "dependencies": [],
}

CATALOG = Path("backups.txt")
PRUNED = Path("pruned.txt")


class Input(BaseModel):
    daily: int = Field(default=7, ge=0, description="How many daily ones stay")
    weekly: int = Field(default=4, ge=0, description="How many weekly ones stay")
    monthly: int = Field(default=12, ge=0, description="How many monthly ones stay")


class Output(BaseModel):
    kept: list[str]
    pruned: list[str]


def day_of(name: str) -> date:
    """The day in a name such as daily-2026-03-01 or weekly-2026-03-01-full."""
    return date.fromisoformat(name.split("-", 1)[1][:10])


def newest(names: list[str], count: int) -> list[str]:
    """The last ``count`` of them by their days, or all where there are fewer."""
    ordered = sorted(names, key=day_of)
    return ordered[max(0, len(ordered) - count) :]


def run(input: Input) -> Output:
    names = CATALOG.read_text(encoding="utf-8").split()
    counts = {"daily": input.daily, "weekly": input.weekly, "monthly": input.monthly}
    kept: set[str] = set()
    for kind, count in counts.items():
        kept.update(newest([name for name in names if name.startswith(f"{kind}-")], count))
    pruned = [name for name in names if name not in kept and name.split("-")[0] in counts]
    left = [name for name in names if name not in pruned]
    CATALOG.write_text("".join(f"{name}\n" for name in left), encoding="utf-8")
    PRUNED.write_text("".join(f"{name}\n" for name in pruned), encoding="utf-8")
    return Output(kept=left, pruned=pruned)
