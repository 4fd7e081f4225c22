"""Episodes of a podcast by length."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "podcast_minutes",
    "description": "Lengths of a feed's episodes in seconds (given as seconds, MM:SS or H:MM:SS; 0 if missing), the whole in minutes rounded up, and the episodes of at most some minutes",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    at_most: int = 30


class Output(BaseModel):
    seconds: dict[str, int]
    minutes: int
    short: list[str]


def seconds(text: str) -> int:
    parts = [int(part or 0) for part in text.strip().split(":")]
    if len(parts) == 1:
        return parts[0]
    return sum(part * unit for part, unit in zip(parts, (3600, 60, 1)))


def run(input: Input) -> Output:
    root = ElementTree.fromstring(Path(input.path).read_text(encoding="utf-8"))
    lengths = {}
    for item in root.iter("item"):
        title = (item.findtext("title") or "").strip()
        lengths[title] = seconds(item.findtext("duration") or "0")
    return Output(
        seconds=lengths,
        minutes=-(-sum(lengths.values()) // 60),
        short=[title for title, length in lengths.items() if length <= input.at_most * 60],
    )
