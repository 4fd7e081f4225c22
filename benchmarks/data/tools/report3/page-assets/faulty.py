"""Relative links of pages."""

import posixpath
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "page_assets",
    "description": "Links of a page to files of its site, each written relative to the folder of the page",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: page -> asset, both from the top of the site")


class Output(BaseModel):
    links: dict[str, list[str]]
    outside: int


def relative(page: str, asset: str) -> str:
    folder = posixpath.dirname(page) or "."
    return posixpath.relpath(folder, asset)


def run(input: Input) -> Output:
    links: dict[str, list[str]] = {}
    outside = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        page, arrow, asset = line.partition("->")
        if not arrow:
            continue
        page, asset = page.strip(), asset.strip()
        if "://" in asset:
            outside += 1
            continue
        if not asset.startswith("/"):
            links.setdefault(page, []).append(asset)
            continue
        links.setdefault(page, []).append(relative(page, asset))
    return Output(links=links, outside=outside)
