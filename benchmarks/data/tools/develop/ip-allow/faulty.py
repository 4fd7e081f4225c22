"""Addresses against a list of nets."""

from ipaddress import ip_address, ip_network
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "ip_allow",
    "description": "Says of each address whether a list of allowed and denied nets lets it in; of several nets that hold it, the narrowest counts, and what no net holds is denied",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    rules: str
    addresses: list[str]


class Output(BaseModel):
    allowed: list[str]
    denied: list[str]
    unmatched: int


def run(input: Input) -> Output:
    """Lines: allow or deny, net; # begins a remark. Of the same net twice the first line counts."""
    rules = []
    for line in Path(input.rules).read_text(encoding="utf-8").splitlines():
        line = line.split("#")[0].strip()
        if line:
            verb, net = line.split()
            rules.append((ip_network(net), verb.lower() == "allow"))
    allowed, denied = [], []
    unmatched = 0
    for text in input.addresses:
        address = ip_address(text)
        holding = [rule for rule in rules if address in rule[0]]
        if not holding:
            unmatched += 1
            denied.append(text)
            continue
        _, good = holding[0]
        (allowed if good else denied).append(text)
    return Output(allowed=allowed, denied=denied, unmatched=unmatched)
