"""Who gets a mail."""

from collections import Counter
from email.utils import parseaddr
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "mail_recipients",
    "description": "Who gets a mail, from the To, Cc and Bcc lines of its head: each address once, in small letters, with the name that stands beside it where there is one; and how many of them are in each domain",
    "effects": ["read"],
    "dependencies": [],
}

FIELDS = ("to", "cc", "bcc")


class Input(BaseModel):
    path: str = Field(description="The head of a mail: lines of the form Name: value")


class Output(BaseModel):
    people: list[str]
    domains: dict[str, int]


def values(path: str) -> list[str]:
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip().lower() in FIELDS:
            found.append(value.strip())
    return found


def pairs(value: str) -> list[tuple[str, str]]:
    """Names and addresses of one line."""
    found = [parseaddr(part) for part in value.split(",")]
    return [(name, address.lower()) for name, address in found if address]


def run(input: Input) -> Output:
    people: dict[str, str] = {}
    for value in values(input.path):
        for name, address in pairs(value):
            if not people.get(address):
                people[address] = name
    domains = Counter(address.rpartition("@")[2] for address in people)
    shown = [f"{name} <{address}>" if name else address for address, name in people.items()]
    return Output(people=shown, domains=dict(domains))
