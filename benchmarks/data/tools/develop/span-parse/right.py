"""Lengths of time."""

from pydantic import BaseModel

TOOL = {
    "name": "span_parse",
    "description": "Reads lengths of time such as 1d2h, 90m or 1h30 into seconds and writes them in the shortest form; a number at the end without a letter is in the default unit",
    "effects": ["pure"],
    "dependencies": [],
}

SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


class Input(BaseModel):
    spans: list[str]
    default: str = "m"


class Output(BaseModel):
    seconds: list[int]
    short: list[str]
    total: int


def read(text: str, default: str) -> int:
    """Spaces and the case of letters do not matter."""
    total = 0
    digits = ""
    for character in text.lower():
        if character.isdigit():
            digits += character
        elif character in SECONDS:
            total += int(digits) * SECONDS[character]
            digits = ""
        elif not character.isspace():
            raise ValueError(f"{text!r} is not a length of time")
    if digits:
        total += int(digits) * SECONDS[default]
    return total


def write(seconds: int) -> str:
    pieces = []
    for letter, size in SECONDS.items():
        if seconds >= size:
            pieces.append(f"{seconds // size}{letter}")
            seconds %= size
    return "".join(pieces) or "0s"


def run(input: Input) -> Output:
    seconds = [read(text, input.default) for text in input.spans]
    return Output(seconds=seconds, short=[write(value) for value in seconds], total=sum(seconds))
