"""Follows the redirects of a web site."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "page_redirects",
    "description": "The page at which each old address of a web site arrives when its redirects are followed to the end, the old addresses that do not arrive at a page that exists, and the pages at which no old address arrives",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: /old -> /new")
    pages: list[str] = Field(description="The pages that exist")


class Output(BaseModel):
    arrive: dict[str, str]
    lost: list[str]
    unused: list[str]


def follow(address: str, moved: dict[str, str], passed: tuple[str, ...] = ()) -> str | None:
    """Where one arrives in the end; nowhere, if it goes round in a circle."""
    if address in passed:
        return None
    if address not in moved:
        return address
    return follow(moved[address], moved, (*passed, address))


def run(input: Input) -> Output:
    """Addresses in the order of the file."""
    moved: dict[str, str] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            old, _, new = line.partition("->")
            moved[old.strip()] = new.strip()
    arrive: dict[str, str] = {}
    lost = []
    for old in moved:
        end = follow(old, moved)
        if end in input.pages:
            arrive[old] = end
        else:
            lost.append(old)
    unused = [page for page in input.pages if page not in arrive.values()]
    return Output(arrive=arrive, lost=lost, unused=unused)
