"""Targets of a build by steps."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "build_levels",
    "description": "Targets of a build by the step in which they can be built at the earliest",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines such as web: core lib, a target and what it needs")
    only: str | None = Field(None, description="Only this target and what it needs")


class Output(BaseModel):
    steps: list[list[str]]
    missing: list[str]


def level_of(target: str, needs: dict[str, list[str]], levels: dict[str, int]) -> int:
    """0 for a target that needs nothing; kept in levels."""
    if target in levels:
        return levels[target]
    level = 0
    for need in needs.get(target, []):
        level = max(level, level_of(need, needs, levels) + 1)
    levels[target] = level
    return level


def wanted(target: str, needs: dict[str, list[str]]) -> set[str]:
    found = {target}
    for need in needs.get(target, []):
        found |= wanted(need, needs)
    return found


def run(input: Input) -> Output:
    needs: dict[str, list[str]] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        target, colon, rest = line.partition(":")
        if colon:
            needs[target.strip()] = rest.split()
    levels: dict[str, int] = {}
    chosen = wanted(input.only, needs) if input.only else set(needs)
    for target in sorted(chosen):
        level_of(target, needs, levels)
    steps: list[list[str]] = [[] for _ in range(max(levels.values(), default=-1) + 1)]
    for target in sorted(levels):
        steps[levels[target]].append(target)
    missing = sorted({need for target in chosen for need in needs.get(target, []) if need not in needs})
    return Output(steps=steps, missing=missing)
