"""The links of a Markdown page."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "page_links",
    "description": "Lists the links of a Markdown page with their texts, each target once, by whether they lead to the web, to a mail address, to a place on the page or to a file; a line may hold several",
    "effects": ["read"],
    "dependencies": [],
}

LINK = re.compile(r"\[(.+?)\]\((.+?)\)")


class Input(BaseModel):
    path: str = Field(description="A Markdown page with links of the form [text](target)")


class Output(BaseModel):
    web: list[str]
    mail: list[str]
    places: list[str]
    files: list[str]


def kind(target: str) -> str:
    if target.startswith(("http://", "https://")):
        return "web"
    if target.startswith("mailto:"):
        return "mail"
    return "places" if target.startswith("#") else "files"


def run(input: Input) -> Output:
    found: dict[str, dict[str, str]] = {"web": {}, "mail": {}, "places": {}, "files": {}}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):  # code
            continue
        for text, target in LINK.findall(line):
            found[kind(target)].setdefault(target.removeprefix("mailto:"), text)
    return Output(**{name: [f"{text}: {target}" for target, text in links.items()] for name, links in found.items()})
