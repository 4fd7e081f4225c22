"""Replies in the wire format of Redis (RESP 2)."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "resp_replies",
    "description": "Replies of a Redis server from their wire format: texts, numbers, lists, null for no value, and ERROR: before an error",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="What the server sent, as it is on the wire")


class Output(BaseModel):
    replies: list[object]
    errors: int


def read(data: bytes, at: int) -> tuple[object, int]:
    """The reply that begins here, and where the next one does."""
    end = data.index(b"\r\n", at)
    kind, line = data[at : at + 1], data[at + 1 : end].decode()
    at = end + 2
    if kind == b"+":
        return line, at
    if kind == b"-":
        return f"ERROR: {line}", at
    if kind == b":":
        return int(line), at
    if kind == b"$":
        size = int(line)
        return data[at : at + size].decode(), at + size + 2
    if kind == b"*":
        items = []
        for _ in range(int(line)):
            item, at = read(data, at)
            items.append(item)
        return items, at
    raise ValueError(f"no reply begins with {kind!r}")


def run(input: Input) -> Output:
    data = Path(input.path).read_bytes()
    replies = []
    at = 0
    while at < len(data):
        reply, at = read(data, at)
        replies.append(reply)
    errors = sum(isinstance(reply, str) and reply.startswith("ERROR: ") for reply in replies)
    return Output(replies=replies, errors=errors)
