"""Invitations that came back."""

import base64
from datetime import date
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "invite_links",
    "description": "Who accepted an invitation, and how many seats that takes, from the links that guests opened: the last part of each holds guest, seats and the last day to answer, in the form of base64 that addresses use (without the signs that only fill it up)",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    day: str


class Output(BaseModel):
    guests: dict[str, int]
    seats: int
    late: list[str]


def said(code: str) -> list[str]:
    filled = code + "=" * (-len(code) % 4)
    return base64.urlsafe_b64decode(filled).decode("utf-8").split("|")


def run(input: Input) -> Output:
    """Who opens a link twice comes once, with the seats of the last link."""
    today = date.fromisoformat(input.day)
    guests: dict[str, int] = {}
    late: list[str] = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        code = line.strip().rstrip("/").rsplit("/", 1)[-1]
        if not code:
            continue
        guest, seats, until = said(code)
        if date.fromisoformat(until) < today:
            if guest not in late:
                late.append(guest)
            continue
        guests[guest] = int(seats)
    return Output(guests=guests, seats=sum(guests.values()), late=late)
