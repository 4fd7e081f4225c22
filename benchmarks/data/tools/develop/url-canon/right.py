"""One form for each address."""

import re

from pydantic import BaseModel

TOOL = {
    "name": "url_canon",
    "description": "Brings web addresses to one form: scheme and host in small letters, no port where it is the scheme's own, no dots in the path, no fragment; and says which were the same",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    urls: list[str]


class Output(BaseModel):
    canonical: list[str]
    same: int


PORTS = {"http": 80, "https": 443}
URL = re.compile(r"(?P<scheme>\w+)://(?P<host>[^/:?#]+)(:(?P<port>\d+))?(?P<path>[^?#]*)(?P<query>\?[^#]*)?")


def clean(path: str) -> str:
    """Without . and .. steps; an empty path is the root."""
    kept: list[str] = []
    steps = path.split("/")[1:]
    for step in steps:
        if step == "..":
            if kept:
                kept.pop()
        elif step != ".":
            kept.append(step)
    if steps and steps[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def run(input: Input) -> Output:
    """In the given order, each form once; counts the addresses that were there in that form already."""
    found: list[str] = []
    for url in input.urls:
        match = URL.match(url.strip())
        if match is None:
            raise ValueError(f"{url!r} is no web address")
        scheme = match["scheme"].lower()
        host = match["host"].lower()
        port = int(match["port"] or PORTS.get(scheme, 0))
        if port != PORTS.get(scheme, 0):
            host += f":{port}"
        found.append(f"{scheme}://{host}{clean(match['path'])}{match['query'] or ''}")
    unique = list(dict.fromkeys(found))
    return Output(canonical=unique, same=len(found) - len(unique))
