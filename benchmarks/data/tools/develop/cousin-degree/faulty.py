"""Kinship by the nearest common ancestor."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "cousin_degree",
    "description": "How two people are related, from the generations between each of them and their nearest common ancestor",
    "effects": ["read"],
    "dependencies": [],
}

TIMES = {0: "", 1: " once removed", 2: " twice removed"}


class Input(BaseModel):
    path: str = Field(description="Lines: child, parent")
    pairs: list[tuple[str, str]]


class Output(BaseModel):
    kinship: list[str]


def ancestors(person: str, parents: dict[str, list[str]]) -> dict[str, int]:
    """Each ancestor with the generations to it; the person too, with none."""
    found = {person: 0}
    todo = [person]
    while todo:
        one = todo.pop(0)
        for parent in parents.get(one, []):
            if parent not in found:
                found[parent] = found[one] + 1
                todo.append(parent)
    return found


def name(up: int, down: int) -> str:
    near, far = min(up, down), max(up, down)
    if near == 0:
        return "same" if far == 0 else "line"
    if near == 1:
        return "siblings" if far == 1 else "aunt or uncle"
    return f"cousins {far - 1}" + TIMES.get(far - near, f" {far - near} times removed")


def run(input: Input) -> Output:
    parents: dict[str, list[str]] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            child, parent = (part.strip() for part in line.split(","))
            parents.setdefault(child, []).append(parent)
    kinship = []
    for one, other in input.pairs:
        a, b = ancestors(one, parents), ancestors(other, parents)
        common = sorted(((a[who] + b[who], min(a[who], b[who]), who) for who in a if who in b))
        kinship.append(name(a[common[0][2]], b[common[0][2]]) if common else "none")
    return Output(kinship=kinship)
