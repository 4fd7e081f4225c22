"""Pagination from an HTTP Link header."""

import re

from pydantic import BaseModel, Field

TOOL = {
    "name": "link_header",
    "description": "The addresses in an HTTP Link header by relation, the next page's number and how many pages remain",
    "effects": ["pure"],
    "dependencies": [],
}

LINK = re.compile(r'<([^>]*)>\s*;\s*rel="?([\w-]+)"?')


class Input(BaseModel):
    header: str
    limit: int = Field(10, description="never fetch more pages than this")


class Output(BaseModel):
    links: dict[str, str]
    next_page: int | None
    remaining: int


def page_of(url: str | None) -> int | None:
    if url is None:
        return None
    match = re.search(r"[?&]page=(\d+)", url)
    return int(match[1]) if match else None


def run(input: Input) -> Output:
    links = {rel.lower(): url for url, rel in LINK.findall(input.header)}
    following = page_of(links.get("next"))
    last = page_of(links.get("last"))
    if following is None:
        remaining = 0
    elif last is None:
        remaining = 1
    else:
        remaining = last - following + 1
    return Output(links=links, next_page=following, remaining=max(0, min(remaining, input.limit)))
