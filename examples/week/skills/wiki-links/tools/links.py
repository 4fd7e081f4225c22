"""Links that lead nowhere."""

import re
from pathlib import Path

from pydantic import BaseModel

from agentos.worker.egress import fetch

TOOL = {
    "name": "links",
    "description": "Broken links of a documentation tree",
    "effects": ["read", "external"],
    "secrets": ["WIKI"],
}
HEADERS = {"Authorization": "Bearer {{secret:WIKI}}"}


class Input(BaseModel):
    folder: str
    wiki: str


class Output(BaseModel):
    links: int
    broken: list[str]


def run(input: Input) -> Output:
    links, broken = 0, []
    for page in sorted(Path(input.folder).rglob("*.md")):
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            links += 1
            if target.startswith("wiki:"):
                there = fetch(f"{input.wiki}/{target[5:]}", headers=HEADERS).status == 200
            else:
                there = (page.parent / target).exists()
            if not there:
                broken.append(f"{page}: {target}")
    return Output(links=links, broken=broken)
