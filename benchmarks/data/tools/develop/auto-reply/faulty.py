"""Who is told that nobody is there."""

from email.utils import parseaddr
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "auto_reply",
    "description": "To whose messages an absence note is sent, each sender once, and why the others get none: own mail, automatic mail, mailing lists, bulk mail, addresses that nobody reads",
    "effects": ["read"],
    "dependencies": [],
}

UNREAD = ("noreply@", "no-reply@", "mailer-daemon@", "postmaster@")


class Input(BaseModel):
    path: str
    me: str


class Output(BaseModel):
    told: list[str]
    skipped: dict[str, int]


def headers_of(block: str) -> dict[str, str]:
    found = {}
    for line in block.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found[name.strip().lower()] = value.strip()
    return found


def why_not(headers: dict[str, str], sender: str, me: str) -> str | None:
    if sender == me.lower():
        return "own"
    if "auto-submitted" in headers:
        return "automatic"
    if "list-id" in headers:
        return "list"
    if headers.get("precedence", "").lower() in ("bulk", "junk", "list"):
        return "bulk"
    return "unread" if not sender or sender.startswith(UNREAD) else None


def run(input: Input) -> Output:
    """The heads of messages stand apart by empty lines. A message that says it is not automatic is a person's."""
    told: list[str] = []
    skipped: dict[str, int] = {}
    for block in Path(input.path).read_text(encoding="utf-8").split("\n\n"):
        headers = headers_of(block)
        if not headers:
            continue
        sender = parseaddr(headers.get("from", ""))[1].lower()
        reason = why_not(headers, sender, input.me)
        if reason is None and sender in told:
            reason = "told before"
        if reason is None:
            told.append(sender)
        else:
            skipped[reason] = skipped.get(reason, 0) + 1
    return Output(told=told, skipped=skipped)
