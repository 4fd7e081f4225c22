"""Levels of stage lights at the cues of a show."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "stage_lights",
    "description": "Levels in percent of each light at each cue, from a list of commands: light N LEVEL, all LEVEL, drop N, cue NAME",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="One command a line; # begins a comment")
    most: int = Field(default=100, description="The highest level, in percent")


class Output(BaseModel):
    cues: dict[str, dict[str, int]]
    lit: dict[str, int]


def run(input: Input) -> Output:
    levels: dict[str, int] = {}
    cues: dict[str, dict[str, int]] = {}
    lit: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        command, *rest = line.partition("#")[0].split() or [""]
        if command == "light":
            levels[rest[0]] = min(int(rest[1]), input.most)
        elif command == "all":
            for light in levels:
                levels[light] = min(int(rest[0]), input.most)
        elif command == "drop":
            levels.pop(rest[0], None)
        elif command == "cue":
            cues[rest[0]] = levels
            lit[rest[0]] = sum(level > 0 for level in levels.values())
    return Output(cues=cues, lit=lit)
