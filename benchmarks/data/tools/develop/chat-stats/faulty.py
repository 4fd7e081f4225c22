"""Statistics of an exported chat."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "chat_stats",
    "description": "Messages and words of each person in a chat",
    "effects": ["read"],
    "dependencies": [],
}

MESSAGE = re.compile(r"^\[(\d\d\.\d\d\.\d\d) (\d\d:\d\d)\] (.+): (.*)$")


class Input(BaseModel):
    path: str


class Output(BaseModel):
    messages: dict[str, int]
    words: dict[str, int]
    night: int


def is_night(time: str) -> bool:
    return time < "06:00" or time >= "22:00"


def run(input: Input) -> Output:
    """A line without a date goes on with the message above it."""
    messages: dict[str, int] = {}
    words: dict[str, int] = {}
    night = 0
    person = ""
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        match = MESSAGE.match(line)
        if match:
            _date, time, person, text = match.groups()
            messages[person] = messages.get(person, 0) + 1
            night += is_night(time)
        else:
            text = line
        if person:
            words[person] = words.get(person, 0) + len(text.split())
    return Output(messages=messages, words=words, night=night)
