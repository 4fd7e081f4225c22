"""Counts log entries within a window of time."""

from datetime import datetime
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "count_window",
    "description": "Entries of a log from `since` (inclusive) up to `until` (exclusive), by third word",
    "effects": ["read"],
    "dependencies": [],
}

STAMP = "%Y-%m-%d %H:%M:%S"


class Input(BaseModel):
    log: str
    since: str
    until: str
    word: str = ""


class Output(BaseModel):
    entries: int
    words: dict[str, int]


def run(input: Input) -> Output:
    since = datetime.strptime(input.since, STAMP)
    until = datetime.strptime(input.until, STAMP)
    words: dict[str, int] = {}
    for line in Path(input.log).read_text(encoding="utf-8").splitlines():
        if len(line) < 20:
            continue
        stamp = datetime.strptime(line[:19], STAMP)
        word = line[20:].split(" ", 1)[0]
        if input.word and word != input.word:
            continue
        if since < stamp < until:
            words[word] = words.get(word, 0) + 1
    return Output(entries=sum(words.values()), words=dict(sorted(words.items())))
