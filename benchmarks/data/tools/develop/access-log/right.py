"""What a web server sent, by status class."""

import re
from collections import defaultdict
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "access_log",
    "description": "Bytes and errors in a web server's log",
    "effects": ["read"],
    "dependencies": [],
}

LINE = re.compile(r'^(\S+) \S+ \S+ \[[^\]]+\] "(\w+) (\S+) [^"]*" (\d{3}) (\d+|-)$')


class Input(BaseModel):
    path: str


class Output(BaseModel):
    requests: int
    sent: int
    classes: dict[str, int]
    clients: list[str]


def run(input: Input) -> Output:
    """Lines of the common log format; others are not counted."""
    requests = sent = 0
    classes: dict[str, int] = defaultdict(int)
    clients = set()
    with Path(input.path).open(encoding="utf-8") as handle:
        for line in handle:
            match = LINE.match(line.rstrip("\n"))
            if match is None:
                continue
            client, _method, _target, status, size = match.groups()
            requests += 1
            clients.add(client)
            classes[status[0] + "xx"] += 1
            sent += 0 if size == "-" else int(size)
    return Output(requests=requests, sent=sent, classes=dict(classes), clients=sorted(clients))
