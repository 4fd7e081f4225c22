"""One spelling for each web address."""

import re

from pydantic import BaseModel

TOOL = {
    "name": "url_key",
    "description": "One spelling for addresses of the same page: scheme and host in lower case, no fragment, / for no path, and no port where it is the scheme's own (80 for http, 443 for https); and how many different ones there are",
    "effects": ["pure"],
    "dependencies": [],
}

PORTS = {"http": 80, "https": 443}
ADDRESS = re.compile(r"(https?)://([^/?#:]+)(?::(\d+))?([^?#]*)(\?[^#]*)?(#.*)?", re.IGNORECASE)


class Input(BaseModel):
    urls: list[str]


class Output(BaseModel):
    keys: list[str]
    different: int


def key(url: str) -> str:
    match = ADDRESS.fullmatch(url.strip())
    if match is None:
        raise ValueError(f"{url!r} is not an address of http or https")
    scheme, host = match[1].lower(), match[2].lower()
    if match[3] and int(match[3]) not in PORTS.values():
        host = f"{host}:{match[3]}"
    return f"{scheme}://{host}{match[4] or '/'}{match[5] or ''}"


def run(input: Input) -> Output:
    keys = [key(url) for url in input.urls]
    return Output(keys=keys, different=len(set(keys)))
