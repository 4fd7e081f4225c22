"""Octal file modes as `ls -l` shows them."""

from typing import Literal

from pydantic import BaseModel

TOOL = {
    "name": "mode_bits",
    "description": "Octal modes as ls shows them (capital S and T where a special bit has no execute bit), and risky ones",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    modes: list[str]
    kind: Literal["file", "folder"] = "file"


class Output(BaseModel):
    shown: dict[str, str]
    risky: list[str]


def triple(bits: int, special: bool, letter: str) -> str:
    read = "r" if bits & 4 else "-"
    write = "w" if bits & 2 else "-"
    execute = "x" if bits & 1 else "-"
    if special:
        execute = letter
    return read + write + execute


def show(mode: int) -> str:
    return (
        triple(mode >> 6 & 7, bool(mode & 0o4000), "s")
        + triple(mode >> 3 & 7, bool(mode & 0o2000), "s")
        + triple(mode & 7, bool(mode & 0o1000), "t")
    )


def run(input: Input) -> Output:
    shown = {}
    risky = []
    for text in input.modes:
        mode = int(text, 8)
        shown[text] = ("d" if input.kind == "folder" else "-") + show(mode)
        writable = mode & 0o002 and not (input.kind == "folder" and mode & 0o1000)
        if writable or (input.kind == "file" and mode & 0o4000):
            risky.append(text)
    return Output(shown=shown, risky=risky)
