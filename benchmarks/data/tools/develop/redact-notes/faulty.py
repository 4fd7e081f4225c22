"""Redacted notes."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "redact_notes",
    "description": "Replace what stands between double brackets, and addresses of mail, in the notes of a meeting",
    "effects": ["read", "write"],
    "dependencies": [],
}

PASSAGE = re.compile(r"\[\[.*\]\]")
MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


class Input(BaseModel):
    path: str
    out: str = Field(description="File for the redacted notes")
    mark: str = "█"


class Output(BaseModel):
    passages: int
    mails: int
    lines: list[int] = Field(description="Numbers of the lines that changed")


def run(input: Input) -> Output:
    passages = mails = 0
    changed = []
    done = []
    for number, line in enumerate(Path(input.path).read_text(encoding="utf-8").splitlines(), start=1):
        text, here = PASSAGE.subn(input.mark, line)
        text, there = MAIL.subn("<mail>", text)
        passages += here
        mails += there
        if text != line:
            changed.append(number)
        done.append(text + "\n")
    Path(input.out).write_text("".join(done), encoding="utf-8")
    return Output(passages=passages, mails=mails, lines=changed)
