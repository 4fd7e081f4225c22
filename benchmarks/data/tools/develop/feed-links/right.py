"""Links for the feed of a site."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "feed_links",
    "description": "The full links of a site's pages, made from its address and their paths with one slash between, without those that occur again; the page that changed last, and how many pages each top folder has",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="A page's path on each line, perhaps with the day of its last change: news/a.html 2026-03-02")
    base: str = Field(description="The site's address")


class Output(BaseModel):
    links: list[str]
    newest: str | None
    folders: dict[str, int]


def run(input: Input) -> Output:
    links: list[str] = []
    folders: dict[str, int] = {}
    newest: str | None = None
    latest = ""
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        page, _, changed = line.strip().partition(" ")
        link = input.base.rstrip("/") + "/" + page.lstrip("/")
        if link not in links:
            links.append(link)
            parts = [part for part in page.split("/") if part]
            folder = parts[0] if len(parts) > 1 else ""
            folders[folder] = folders.get(folder, 0) + 1
        if changed.strip() > latest:
            latest, newest = changed.strip(), link
    return Output(links=links, newest=newest, folders=folders)
