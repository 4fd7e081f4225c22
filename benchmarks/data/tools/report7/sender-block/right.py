"""Mails of senders who are not blocked."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "sender_block",
    "description": "Subjects of the mails whose sender is not blocked, and mails stopped by each address or domain, in small letters",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    blocked: str = Field(description="One address or domain a line; # begins a comment")
    mails: str = Field(description="CSV with sender and subject")


class Output(BaseModel):
    kept: list[str]
    stopped: dict[str, int]


def entries(text: str) -> set[str]:
    """The addresses and domains of a list."""
    found = set()
    for line in text.splitlines():
        entry = line.partition("#")[0].strip().lower()
        if entry:
            found.add(entry)
    return found


def run(input: Input) -> Output:
    blocked = entries(Path(input.blocked).read_text(encoding="utf-8"))
    kept = []
    stopped: dict[str, int] = {}
    with Path(input.mails).open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            sender = row["sender"].strip().lower()
            domain = sender.rpartition("@")[2]
            entry = next((name for name in (sender, domain) if name in blocked), None)
            if entry is None:
                kept.append(row["subject"])
            else:
                stopped[entry] = stopped.get(entry, 0) + 1
    return Output(kept=kept, stopped=stopped)
