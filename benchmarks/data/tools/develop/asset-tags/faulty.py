"""Tags of devices that were read with a scanner."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "asset_tags",
    "description": "Which tags of devices, as a scanner read them, are of the form KIND-0000 with one of the given kinds and four digits, how many there are of each kind, and the tags that are not of this form",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    kinds: list[str]


class Output(BaseModel):
    counts: dict[str, int]
    wrong: list[str]
    last: str | None


def run(input: Input) -> Output:
    """One tag on each line; a tag that was read twice counts once."""
    kinds = "|".join(re.escape(kind) for kind in input.kinds)
    pattern = re.compile(f"^{kinds}-[0-9]{{4}}$")
    counts = dict.fromkeys(input.kinds, 0)
    wrong: list[str] = []
    last = None
    seen = set()
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        tag = line.strip()
        if not tag or tag in seen:
            continue
        seen.add(tag)
        if pattern.search(tag):
            kind = tag.partition("-")[0]
            counts[kind] = counts.get(kind, 0) + 1
            last = max(last or tag, tag, key=lambda known: known[-4:])
        else:
            wrong.append(tag)
    return Output(counts=counts, wrong=wrong, last=last)
