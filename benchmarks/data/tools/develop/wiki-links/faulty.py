"""Broken links of a wiki page."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "wiki_links",
    "description": "Links [[Page#section|text]] of a wiki text: pages linked, links to pages that do not exist, and orphans",
    "effects": ["read"],
    "dependencies": [],
}

LINK = re.compile(r"\[\[([^\[\]]+)\]\]")


class Input(BaseModel):
    path: str
    pages: list[str]


class Output(BaseModel):
    linked: dict[str, int]
    broken: list[str]
    orphans: list[str]


def target(link: str) -> str:
    """The page that a link goes to: what stands before the text and the section."""
    page = link.split("|")[0]
    return page.strip()


def run(input: Input) -> Output:
    text = Path(input.path).read_text(encoding="utf-8")
    linked: dict[str, int] = {}
    for link in LINK.findall(text):
        page = target(link)
        if page:  # [[#section]] stays on the page
            linked[page] = linked.get(page, 0) + 1
    existing = {page.casefold() for page in input.pages}
    found = {page.casefold() for page in linked}
    return Output(
        linked=dict(sorted(linked.items())),
        broken=sorted(page for page in linked if page.casefold() not in existing),
        orphans=sorted(page for page in input.pages if page.casefold() not in found),
    )
