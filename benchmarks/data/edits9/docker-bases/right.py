"""Images that a build needs."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "docker_bases",
    "description": "The images that a Dockerfile pulls, without scratch and without its own earlier stages, whose names are the same in small and capital letters",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The Dockerfile")


class Output(BaseModel):
    images: list[str] = Field(description="in the order of the file, each once")


FROM = re.compile(r"FROM\s+(?:--platform=\S+\s+)?(\S+)(?:\s+AS\s+(\S+))?", re.IGNORECASE)


def run(input: Input) -> Output:
    images: list[str] = []
    stages: set[str] = set()
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        match = FROM.fullmatch(line.strip())
        if match is None:
            continue
        base = match[1]
        if base != "scratch" and base.lower() not in stages and base not in images:
            images.append(base)
        if match[2]:
            stages.add(match[2].lower())
    return Output(images=images)
