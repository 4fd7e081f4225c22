"""The newest build of each product."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "newest_build",
    "description": "The newest build of each product in a listing of builds, and how many builds each has",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines such as: editor 1.9.2; # begins a comment")


class Output(BaseModel):
    newest: dict[str, str]
    builds: dict[str, int]


def order(version: str) -> tuple[int, ...]:
    """What versions are compared by; zeros at the end do not count."""
    parts = [int(part) for part in version.split(".")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def run(input: Input) -> Output:
    newest: dict[str, str] = {}
    builds: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        text = line.split("#")[0].strip()
        if not text:
            continue
        product, version = text.split()
        builds[product] = builds.get(product, 0) + 1
        if product not in newest or order(version) > order(newest[product]):
            newest[product] = version
    return Output(newest=newest, builds=builds)
