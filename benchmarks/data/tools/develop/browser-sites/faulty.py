"""Sites in a browser's history."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "browser_sites",
    "description": "How often each site was visited and how many pages of it, the most visited first, from the addresses in a browser's history; a leading www. makes no other site, nor do capitals",
    "effects": ["read"],
    "dependencies": [],
}


PREFIX = "www."


class Input(BaseModel):
    path: str
    most: int = 10


class Site(BaseModel):
    name: str
    visits: int
    pages: int


class Output(BaseModel):
    sites: list[Site]
    others: int


def site_and_page(address: str) -> tuple[str, str] | None:
    """The host without its port, and the page without its query; None where the address has no host."""
    scheme, _, rest = address.partition("://")
    host, _, page = re.split(r"[?#]", rest)[0].partition("/")
    host = host.split("@")[-1].split(":")[0].lower()
    if scheme.lower() not in ("http", "https") or not host:
        return None
    return host.lstrip(PREFIX), page.rstrip("/")


def run(input: Input) -> Output:
    """An address on each line; of sites with equally many visits the first by name comes first."""
    visits: dict[str, int] = {}
    pages: dict[str, set[str]] = {}
    others = 0
    for address in Path(input.path).read_text(encoding="utf-8").split():
        found = site_and_page(address)
        if found is None:
            others += 1
            continue
        name, page = found
        visits[name] = visits.get(name, 0) + 1
        pages.setdefault(name, set()).add(page)
    order = sorted(visits, key=lambda name: (-visits[name], name))
    sites = [Site(name=name, visits=visits[name], pages=len(pages[name])) for name in order]
    return Output(sites=sites[: input.most], others=others)
