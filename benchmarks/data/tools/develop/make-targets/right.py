"""Reads the rules of a makefile."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "make_targets",
    "description": "What each target of a makefile is made from, a line that ends with a backslash going on in the next, which of these files are no targets themselves, and how many commands each target has",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    needs: dict[str, list[str]]
    sources: list[str]
    commands: dict[str, int]


def run(input: Input) -> Output:
    """Rules of the form TARGET: FILES, and commands below them that begin with a tab."""
    needs: dict[str, list[str]] = {}
    commands: dict[str, int] = {}
    target = ""
    pending = ""
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        line, pending = pending + line, ""
        if line.startswith("\t"):
            if target:
                commands[target] += 1
            continue
        text = line.partition("#")[0]
        if ":" not in text:
            continue
        left, _, right = text.partition(":")
        target = left.strip()
        commands.setdefault(target, 0)
        files = needs.setdefault(target, [])
        files += [file for file in right.split() if file not in files]
    sources = sorted({file for files in needs.values() for file in files} - set(needs))
    return Output(needs=needs, sources=sources, commands=commands)
