"""Features that a release takes away."""

from pydantic import BaseModel

TOOL = {
    "name": "removal_notice",
    "description": "Which features are gone at a version and which come to an end later, each with the version in which it is removed; 2.1 and 2.1.0 are the same version",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    current: str
    removals: dict[str, str]


class Output(BaseModel):
    gone: list[str]
    later: list[str]
    next_removal: str | None


def parts(version: str) -> tuple[int, ...]:
    numbers = [int(part) for part in version.removeprefix("v").split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def run(input: Input) -> Output:
    """A feature is gone from the version of its removal on; both lists by version, then by name."""
    current = parts(input.current)
    ordered = sorted(input.removals, key=lambda name: (parts(input.removals[name]), name))
    gone = [name for name in ordered if parts(input.removals[name]) <= current]
    later = [name for name in ordered if name not in gone]
    return Output(
        gone=gone,
        later=[f"{name} ({input.removals[name]})" for name in later],
        next_removal=input.removals[later[0]] if later else None,
    )
