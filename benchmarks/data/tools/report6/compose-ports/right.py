"""Ports of the host that a compose file opens."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "compose_ports",
    "description": "Ports of the host that the services of a compose file (as JSON) open, and those that two services want",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="A compose file, written as JSON")


class Output(BaseModel):
    opened: dict[str, list[str]]
    clashes: list[str]
    closed: list[str]


def published(entry: object) -> str | None:
    """The port of the host with its protocol, such as 8080/tcp; None where the engine chooses one."""
    text, _, protocol = str(entry).partition("/")
    parts = text.split(":")
    if len(parts) == 1:
        return None
    return f"{parts[-2]}/{protocol or 'tcp'}"


def order(port: str) -> tuple[str, str]:
    number, _, protocol = port.partition("/")
    return protocol, number.rjust(5)


def run(input: Input) -> Output:
    services = json.loads(Path(input.path).read_text(encoding="utf-8"))["services"]
    opened: dict[str, list[str]] = {}
    wanted: dict[str, set[str]] = {}
    for name, service in services.items():
        for entry in service.get("ports", []):
            port = published(entry)
            if port is None:
                continue
            opened.setdefault(name, []).append(port)
            wanted.setdefault(port, set()).add(name)
    return Output(
        opened={name: sorted(set(ports), key=order) for name, ports in sorted(opened.items())},
        clashes=sorted((port for port, names in wanted.items() if len(names) > 1), key=order),
        closed=sorted(name for name in services if name not in opened),
    )
