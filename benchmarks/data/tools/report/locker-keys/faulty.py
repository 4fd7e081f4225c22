"""Gives lockers to people who wait for one."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "locker_keys",
    "description": "The numbers of the lockers that are free, the lowest first; which of them the people who wait are given, in the order in which they wait, and how many of these get none",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: number;holder, where a free locker has no holder")
    waiting: list[str] = Field([], description="Those who wait for a locker, the first first")


class Output(BaseModel):
    free: list[str]
    given: dict[str, str]
    without: int


def holders(path: str) -> dict[str, str]:
    """A locker that is listed again has the holder who is named last."""
    found = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        number, _, holder = line.partition(";")
        found[number.strip()] = holder.strip()
    return found


def free_lockers(taken: dict[str, str]) -> list[str]:
    free = [number for number, holder in taken.items() if not holder]
    return sorted(free)


def run(input: Input) -> Output:
    """Who has a locker already is not given another."""
    taken = holders(input.path)
    free = free_lockers(taken)
    waiting = [name for name in input.waiting if name not in taken.values()]
    given = dict(zip(waiting, free, strict=False))
    return Output(free=free, given=given, without=len(waiting) - len(given))
