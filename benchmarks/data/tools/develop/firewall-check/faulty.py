"""Packets held against firewall rules."""

from ipaddress import ip_address, ip_network
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "firewall_check",
    "description": "What a list of firewall rules does with packets; the first rule that fits decides",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    rules: str = Field(description="Lines: allow or deny, protocol or any, network, port or range or *")
    packets: str = Field(description="Lines: protocol, address, port")


class Output(BaseModel):
    verdicts: list[str]
    denied: int
    unused: list[int] = Field(description="Rules that decided about no packet, counted from 1")


def lines(path: str) -> list[list[str]]:
    text = Path(path).read_text(encoding="utf-8")
    return [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def port_fits(wanted: str, port: int) -> bool:
    if wanted == "*":
        return True
    low, _, high = wanted.partition("-")
    return int(low) <= port <= int(high or low)


def fits(rule: list[str], packet: list[str]) -> bool:
    _, protocol, network, port = rule
    return (
        protocol == packet[0]
        and ip_address(packet[1]) in ip_network(network)
        and port_fits(port, int(packet[2]))
    )


def run(input: Input) -> Output:
    rules = lines(input.rules)
    verdicts, used = [], set()
    for packet in lines(input.packets):
        number = next((n for n, rule in enumerate(rules, 1) if fits(rule, packet)), None)
        if number is None:
            verdicts.append("deny by default")
        else:
            used.add(number)
            verdicts.append(f"{rules[number - 1][0]} by {number}")
    return Output(
        verdicts=verdicts,
        denied=sum(verdict.startswith("deny") for verdict in verdicts),
        unused=[number for number in range(1, len(rules) + 1) if number not in used],
    )
