"""What ssh would use for a host."""

from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "ssh_host",
    "description": "Settings of an ssh configuration that hold for a host; the first value found for a setting counts",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    host: str


class Output(BaseModel):
    settings: dict[str, str]
    sections: int


def matches(host: str, patterns: list[str]) -> bool:
    for pattern in patterns:
        if pattern.startswith("!") and fnmatchcase(host, pattern[1:]):
            return False
    return any(fnmatchcase(host, pattern) for pattern in patterns)


def run(input: Input) -> Output:
    settings: dict[str, str] = {}
    active = True  # what stands before the first section holds for all
    sections = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        keyword = words[0].lower()
        if keyword == "host":
            active = matches(input.host, words[1:])
            sections += active
        elif active:
            settings.setdefault(keyword, " ".join(words[1:]))
    return Output(settings=settings, sections=sections)
