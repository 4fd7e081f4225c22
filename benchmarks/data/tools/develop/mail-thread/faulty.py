"""Mails of a listing gathered into threads."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "mail_thread",
    "description": "Threads of a mailbox listing by subject, with the number of mails and of people",
    "effects": ["read"],
    "dependencies": [],
}

MARKS = re.compile(r"^(?:re|fwd?|aw|wg):\s*", re.IGNORECASE)


class Input(BaseModel):
    path: str = Field(description="Lines of date and time, sender and subject, with tabs between them")


class Thread(BaseModel):
    subject: str
    mails: int
    people: int
    last: str


class Output(BaseModel):
    threads: list[Thread]
    unanswered: list[str]


def key(subject: str) -> str:
    """A subject without its marks, in one form of spaces and letters."""
    return " ".join(MARKS.sub("", subject.strip()).split()).lower()


def run(input: Input) -> Output:
    found: dict[str, list[tuple[str, str]]] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        when, sender, subject = line.split("\t", 2)
        found.setdefault(key(subject), []).append((when, sender.lower()))
    threads = [
        Thread(
            subject=subject,
            mails=len(mails),
            people=len({sender for _, sender in mails}),
            last=max(when for when, _ in mails),
        )
        for subject, mails in found.items()
    ]
    threads.sort(key=lambda thread: (-thread.mails, thread.subject))
    return Output(
        threads=threads, unanswered=sorted(thread.subject for thread in threads if thread.mails == 1)
    )
