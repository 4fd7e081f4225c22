"""Feeds of an OPML file."""

import xml.etree.ElementTree as ET
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "opml_feeds",
    "description": "Feeds of an OPML list of subscriptions, wherever in its folders they are",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="An OPML file")
    host: str = Field("", description="Only feeds of this host")


class Output(BaseModel):
    feeds: list[str]
    titles: dict[str, str]
    twice: list[str]


def host_of(address: str) -> str:
    """The host of an address, without a port."""
    rest = address.split("//", 1)[-1]
    return rest.split("/", 1)[0].split(":")[0].lower()


def title_of(outline: ET.Element) -> str:
    return (outline.get("title") or outline.get("text") or "").strip()


def run(input: Input) -> Output:
    body = ET.fromstring(Path(input.path).read_text(encoding="utf-8")).find("body")
    feeds: list[str] = []
    titles: dict[str, str] = {}
    twice: set[str] = set()
    if body is None:
        return Output(feeds=[], titles={}, twice=[])
    for outline in body.findall("outline"):
        address = outline.get("xmlUrl")
        if address is None:
            continue  # a folder
        if input.host and host_of(address) != input.host:
            continue
        if address in titles:
            twice.add(address)
            continue
        feeds.append(address)
        titles[address] = title_of(outline) or host_of(address)
    return Output(feeds=feeds, titles=titles, twice=sorted(twice))
