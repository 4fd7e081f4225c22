"""What kind of upgrade it is."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "upgrade_kind",
    "description": "Sorts planned upgrades of packages into major, minor, patch, same and downgrade by their old and new version",
    "effects": ["read"],
    "dependencies": [],
}

KINDS = ("major", "minor", "patch")


class Input(BaseModel):
    path: str


class Output(BaseModel):
    kinds: dict[str, str]
    counts: dict[str, int]
    careful: list[str]


def parts(version: str) -> list:
    """1.2 means 1.2.0; a v before it does not matter."""
    numbers = version.lstrip("v").split(".")
    numbers += ["0"] * (3 - len(numbers))
    return numbers


def kind(old: list, new: list) -> str:
    if new == old:
        return "same"
    if new < old:
        return "downgrade"
    return next(name for name, a, b in zip(KINDS, old, new) if a != b)


def run(input: Input) -> Output:
    kinds: dict[str, str] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            name, old, new = line.split()
            kinds[name] = kind(parts(old), parts(new))
    counts = {name: list(kinds.values()).count(name) for name in sorted(set(kinds.values()))}
    careful = [name for name, what in kinds.items() if what in ("major", "downgrade")]
    return Output(kinds=kinds, counts=counts, careful=careful)
