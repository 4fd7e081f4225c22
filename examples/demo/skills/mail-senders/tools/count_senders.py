"""Counts the messages of each sender in an mbox file."""

import mailbox
from collections import Counter
from contextlib import closing
from email.utils import parseaddr

from pydantic import BaseModel

TOOL = {
    "name": "count_senders",
    "description": "Messages by sender address in an mbox file, most frequent first",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    mbox: str
    domain: str = ""
    top: int = 10


class Output(BaseModel):
    messages: int
    senders: dict[str, int]


def belongs(address: str, domain: str) -> bool:
    return not domain or address.lower().endswith("@" + domain.lower())


def run(input: Input) -> Output:
    counts: Counter[str] = Counter()
    with closing(mailbox.mbox(input.mbox, create=False)) as messages:
        for message in messages:
            _name, address = parseaddr(str(message["From"] or ""))
            if address and belongs(address, input.domain):
                counts[address] += 1
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Output(messages=sum(counts.values()), senders=dict(ranked[: input.top]))
