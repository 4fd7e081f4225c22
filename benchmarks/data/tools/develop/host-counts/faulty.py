"""Links by host."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "host_counts",
    "description": "Counts links by their host, without www. before it and without the port, and names the hosts with at least so many",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    least: int = 1


class Output(BaseModel):
    hosts: dict[str, int]
    top: str | None
    secure: int


LINK = re.compile(r"(?P<scheme>https?)://(?:[^/@]*@)?(?P<host>[^/:?#]+)", re.IGNORECASE)


def run(input: Input) -> Output:
    """An address on each line; the hosts with most links first, then by name. What has no host is passed over."""
    counts: dict[str, int] = {}
    secure = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        match = LINK.match(line.strip())
        if match is None:
            continue
        host = match["host"].lower().lstrip("www.")
        counts[host] = counts.get(host, 0) + 1
        secure += match["scheme"].lower() == "https"
    ordered = sorted(counts, key=lambda host: (-counts[host], host))
    return Output(
        hosts={host: counts[host] for host in ordered if counts[host] >= input.least},
        top=ordered[0] if ordered else None,
        secure=secure,
    )
