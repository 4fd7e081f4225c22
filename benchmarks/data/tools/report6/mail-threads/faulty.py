"""Threads of a mailbox."""

import json
import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "mail_threads",
    "description": "Threads of a mailbox by subject, whatever marks of answers and forwards stand before it",
    "effects": ["read"],
    "dependencies": [],
}
MARK = re.compile(r"(?:re|aw|fwd?)\s*:\s*", re.IGNORECASE)


class Input(BaseModel):
    path: str = Field(description="A message a line, as JSON with from, subject and sent")
    least: int = Field(1, description="Only threads with at least so many messages")


class Thread(BaseModel):
    subject: str
    messages: int
    people: list[str]
    last: str


class Output(BaseModel):
    threads: list[Thread]


def bare(subject: str) -> str:
    """The subject without marks and in small letters."""
    text = subject.strip()
    if found := MARK.match(text):
        text = text[found.end() :]
    return " ".join(text.lower().split())


def run(input: Input) -> Output:
    groups: dict[str, list[dict[str, str]]] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            message = json.loads(line)
            groups.setdefault(bare(message["subject"]), []).append(message)
    threads = [
        Thread(
            subject=subject,
            messages=len(group),
            people=sorted({message["from"] for message in group}),
            last=max(message["sent"] for message in group),
        )
        for subject, group in groups.items()
        if len(group) >= input.least
    ]
    threads.sort(key=lambda thread: (thread.last, thread.subject), reverse=True)
    return Output(threads=threads)
