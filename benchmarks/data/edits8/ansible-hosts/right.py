"""Hosts of an inventory."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "ansible_hosts",
    "description": "The hosts of each group of an Ansible inventory, ranges such as web[01:03] written out",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The inventory in the form of INI")


class Output(BaseModel):
    groups: dict[str, list[str]]
    hosts: int


RANGE = re.compile(r"\[(\d+):(\d+)\]")


def expand(name: str) -> list[str]:
    """All hosts that a name with a range stands for."""
    found = RANGE.search(name)
    if not found:
        return [name]
    before, after = name[: found.start()], name[found.end() :]
    numbers = range(int(found[1]), int(found[2]) + 1)
    return [
        f"{before}{str(number).zfill(len(found[1]))}{rest}" for number in numbers for rest in expand(after)
    ]


def run(input: Input) -> Output:
    groups: dict[str, list[str]] = {}
    group = "ungrouped"
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        line = line.partition("#")[0].strip()
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1]
            groups.setdefault(group, [])
        elif line:
            groups.setdefault(group, []).extend(expand(line.split()[0]))
    return Output(groups=groups, hosts=len({host for hosts in groups.values() for host in hosts}))
