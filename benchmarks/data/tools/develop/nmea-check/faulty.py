"""Sentences of a GPS receiver."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "nmea_check",
    "description": "Counts the good and bad sentences of a GPS log by kind; a sentence stands between $ and *, and two hexadecimal digits after it are the exclusive or of its characters",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    good: dict[str, int]
    bad: list[int]
    skipped: int


def checksum(body: str) -> str:
    value = 0
    for character in body:
        value ^= ord(character)
    return f"{value:X}"


def run(input: Input) -> Output:
    """Kinds are the three letters before the first comma; bad sentences by the number of their line. Others are skipped."""
    good: dict[str, int] = {}
    bad = []
    skipped = 0
    for number, line in enumerate(Path(input.path).read_text(encoding="utf-8").splitlines(), 1):
        line = line.strip()
        if not line.startswith("$") or "*" not in line:
            skipped += bool(line)
            continue
        body, _, told = line[1:].partition("*")
        if told.upper() == checksum(body):
            kind = body.split(",")[0][-3:]
            good[kind] = good.get(kind, 0) + 1
        else:
            bad.append(number)
    return Output(good=good, bad=bad, skipped=skipped)
