"""Leases of addresses."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "dhcp_leases",
    "description": "Which device has which address by the leases file of a DHCP server, where a later lease of an address replaces the earlier",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The file of leases")


class Output(BaseModel):
    active: dict[str, str] = Field(description="devices by address")
    free: int


LEASE = re.compile(r"lease (\S+) \{(.*?)\}", re.DOTALL)


def fields(body: str) -> dict[str, str]:
    """What a lease says, by the first words of its lines."""
    found: dict[str, str] = {}
    for line in body.split(";"):
        words = line.split()
        if words[:1] == ["starts"]:
            found["starts"] = " ".join(words[1:])
        elif words[:2] == ["binding", "state"]:
            found["state"] = words[2]
        elif words[:2] == ["hardware", "ethernet"]:
            found["device"] = words[2]
    return found


def run(input: Input) -> Output:
    leases: dict[str, dict[str, str]] = {}
    for address, body in LEASE.findall(Path(input.path).read_text(encoding="utf-8")):
        leases.setdefault(address, fields(body))
    active = {at: said.get("device", "") for at, said in leases.items() if said.get("state") == "active"}
    return Output(active=active, free=len(leases) - len(active))
