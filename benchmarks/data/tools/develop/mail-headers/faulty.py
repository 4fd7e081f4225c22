"""Reads the headers of a mail."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "mail_headers",
    "description": "The headers of a mail by their name in lower case, up to the first empty line; a line that begins with a space or a tab goes on with the one before it, after a single space; headers that come several times are lists in their order",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    headers: dict[str, list[str]]
    folded: int
    longest: str | None


def run(input: Input) -> Output:
    lines: list[str] = []
    folded = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            break
        if line.startswith(" ") and lines:
            lines[-1] += " " + line.strip()
            folded += 1
        else:
            lines.append(line)
    headers: dict[str, list[str]] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers.setdefault(name.strip().lower(), []).append(value.strip())
    longest = max(headers, key=lambda name: max(map(len, headers[name])), default=None)
    return Output(headers=headers, folded=folded, longest=longest)
