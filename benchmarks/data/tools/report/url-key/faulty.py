"""One spelling for each web address."""

from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel

TOOL = {
    "name": "url_key",
    "description": "One spelling for addresses of the same page: scheme and host in lower case, no fragment, / for no path, and no port where it is the scheme's own (80 for http, 443 for https); and how many different ones there are",
    "effects": ["pure"],
    "dependencies": [],
}

PORTS = {"http": 80, "https": 443}


class Input(BaseModel):
    urls: list[str]


class Output(BaseModel):
    keys: list[str]
    different: int


def key(url: str) -> str:
    parts = urlsplit(url.strip())
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError(f"{url!r} is not an address of http or https")
    host = parts.hostname
    if parts.port is not None and parts.port not in PORTS.values():
        host = f"{host}:{parts.port}"
    return urlunsplit((parts.scheme, host, parts.path or "/", parts.query, ""))


def run(input: Input) -> Output:
    keys = [key(url) for url in input.urls]
    return Output(keys=keys, different=len(set(keys)))
