"""Groups mail addresses by their domain."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "mail_domains",
    "description": "Addresses of a contact list by domain",
    "effects": ["read"],
    "dependencies": [],
}

ADDRESS = re.compile(r"([\w.+-]+)@([\w-]+(?:\.[\w-]+)+)")


class Input(BaseModel):
    path: str


class Output(BaseModel):
    domains: dict[str, list[str]]
    addresses: int


def run(input: Input) -> Output:
    """Each address once; domains and addresses in the order of the alphabet."""
    found: dict[str, set[str]] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        for user, domain in ADDRESS.findall(line):
            found.setdefault(domain.lower(), set()).add(f"{user}@{domain}".lower())
    return Output(
        domains={domain: sorted(found[domain]) for domain in sorted(found)},
        addresses=sum(len(users) for users in found.values()),
    )
