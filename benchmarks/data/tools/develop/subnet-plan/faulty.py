"""A plan of subnets for a list of places."""

import ipaddress
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "subnet_plan",
    "description": "Subnets of one network for places with a number of hosts each, the largest place first",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: place: hosts")
    base: str = Field(description="The network to divide, such as 10.0.0.0/20")


class Output(BaseModel):
    subnets: dict[str, str]
    spare: int = Field(description="Addresses at the end of the network that nobody got")


def bits_for(hosts: int) -> int:
    """How many bits of an address a subnet of so many hosts takes."""
    bits = 2
    while 2**bits < hosts:
        bits += 1
    return bits


def read(path: str) -> list[tuple[str, int]]:
    places = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if ":" in line:
            name, hosts = line.rsplit(":", 1)
            places.append((name.strip(), int(hosts)))
    return sorted(places, key=lambda place: (-place[1], place[0]))


def run(input: Input) -> Output:
    network = ipaddress.ip_network(input.base)
    start, end = int(network.network_address), int(network.broadcast_address)
    subnets = {}
    for name, hosts in read(input.path):
        bits = bits_for(hosts)
        start = -(-start // 2**bits) * 2**bits
        if start + 2**bits - 1 > end:
            raise ValueError(f"no room for {name}")
        subnets[name] = f"{ipaddress.ip_address(start)}/{32 - bits}"
        start += 2**bits
    return Output(subnets=subnets, spare=end + 1 - start)
