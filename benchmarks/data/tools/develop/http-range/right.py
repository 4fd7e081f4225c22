"""Byte ranges as in RFC 9110: ``bytes=0-499``, ``bytes=500-`` and ``bytes=-500``."""

import re

from pydantic import BaseModel, Field

TOOL = {
    "name": "http_range",
    "description": "The bytes of a file that an HTTP Range header asks for: first and last byte, both counted from 0 and included, and how many they are; an end beyond the file means its last byte; all null where nothing of the file is asked for",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    size: int = Field(ge=0, description="Bytes in the file")
    header: str = Field(description="A single range")


class Output(BaseModel):
    first: int | None = None
    last: int | None = None
    length: int = 0


def run(input: Input) -> Output:
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", input.header.strip())
    if match is None or match.groups() == ("", ""):
        raise ValueError(f"{input.header!r} is not a range of bytes")
    start, end = match.groups()
    if not start:
        first = max(0, input.size - int(end))
        last = input.size - 1
    else:
        first = int(start)
        last = min(int(end), input.size - 1) if end else input.size - 1
    if first > last:
        return Output()
    return Output(first=first, last=last, length=last - first + 1)
