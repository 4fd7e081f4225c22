"""Quoted-printable text."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "qp_decode",
    "description": "Decodes quoted-printable text: = and two hexadecimal digits are a byte of UTF-8, a = at the end of a line joins it with the next one, and blanks at the end of a line do not count",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    lines: list[str]
    joined: int
    beyond_ascii: int


HEX = "0123456789ABCDEF"


def decoded(line: str) -> str:
    """What is no valid code stays as it is; bytes that are no UTF-8 become a question mark."""
    found = ""
    position = 0
    while position < len(line):
        code = line[position + 1 : position + 3].upper()
        if line[position] == "=" and len(code) == 2 and code[0] in HEX and code[1] in HEX:
            found += chr(int(code, 16))
            position += 3
        else:
            found += line[position]
            position += 1
    return found


def run(input: Input) -> Output:
    """Counts the joined lines, and the characters that are not ASCII."""
    lines = []
    joined = 0
    started = ""
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        line = line.rstrip()
        if line.endswith("="):
            started += line[:-1]
            joined += 1
            continue
        lines.append(decoded(started + line))
        started = ""
    if started:
        lines.append(decoded(started))
    beyond = sum(not character.isascii() for line in lines for character in line)
    return Output(lines=lines, joined=joined, beyond_ascii=beyond)
