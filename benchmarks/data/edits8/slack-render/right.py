"""Messages of an export."""

import json
import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "slack_render",
    "description": "A Slack export as plain lines, with people by their present names, and how often each is mentioned",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The export as JSON")


class Output(BaseModel):
    lines: list[str]
    mentions: dict[str, int]


MENTION = re.compile(r"<@(\w+)(?:\|[^>]*)?>")


def run(input: Input) -> Output:
    export = json.loads(Path(input.path).read_text(encoding="utf-8"))
    users = export["users"]
    mentions: dict[str, int] = {}

    def named(found: re.Match[str]) -> str:
        name = users.get(found[1], found[1])
        mentions[name] = mentions.get(name, 0) + 1
        return f"@{name}"

    lines = []
    for message in export["messages"]:
        lines.append(f"{users[message['user']]}: {MENTION.sub(named, message['text'])}")
    return Output(lines=lines, mentions=mentions)
