"""Settings of a service."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "systemd_values",
    "description": "The values that a setting has by a unit file of systemd and its drop-ins, in their order; an empty value takes back those before it",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    paths: list[str] = Field(description="The unit file, then its drop-ins")
    section: str
    key: str


class Output(BaseModel):
    values: list[str]


def run(input: Input) -> Output:
    values: list[str] = []
    for path in input.paths:
        section = ""
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            line = line.strip()
            if line.startswith("["):
                section = line.strip("[]")
                continue
            if line.startswith(("#", ";")) or section != input.section:
                continue
            name, _, value = line.partition("=")
            if name.strip() != input.key:
                continue
            if value.strip():
                values.append(value.strip())
            else:
                values.clear()
    return Output(values=values)
