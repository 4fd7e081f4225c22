"""The names of a hosts file."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "hosts_names",
    "description": "Reads a hosts file: the names that are blocked (with 0.0.0.0 or 127.0.0.1) in the order of the alphabet, and the others with their address, where the first line that has a name counts; empty lines and what follows a # say nothing",
    "effects": ["read"],
    "dependencies": [],
}

BLOCKED = {"0.0.0.0", "127.0.0.1"}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: address name name ...")


class Output(BaseModel):
    blocked: list[str]
    hosts: dict[str, str]


def entries(path: str) -> Iterator[tuple[str, str]]:
    """Each name with its address."""
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        said = line.split("#")[0].strip()
        if not said:
            return
        address, *names = said.split()
        for name in names:
            yield name.lower(), address


def run(input: Input) -> Output:
    hosts: dict[str, str] = {}
    for name, address in entries(input.path):
        hosts.setdefault(name, address)
    blocked = sorted(name for name, address in hosts.items() if address in BLOCKED)
    return Output(blocked=blocked, hosts={name: hosts[name] for name in sorted(hosts) if name not in blocked})
