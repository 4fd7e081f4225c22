"""Compares two files of settings."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "dotenv_diff",
    "description": "Names that are missing, surplus or empty in a file of settings, held against its example",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    example: str = Field(description="Lines NAME=value, perhaps with export in front; # begins a remark")
    actual: str


class Output(BaseModel):
    missing: list[str]
    surplus: list[str]
    empty: list[str]
    same: list[str] = Field(description="Names that still have the value of the example")


def unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def read(path: str) -> dict[str, str]:
    settings = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        bare = line.strip().removeprefix("export ")
        if not bare or bare.startswith("#"):
            continue
        name, value = bare.split("=")
        settings[name.strip()] = unquote(value.strip())
    return settings


def run(input: Input) -> Output:
    example, actual = read(input.example), read(input.actual)
    both = sorted(example.keys() & actual.keys())
    return Output(
        missing=sorted(example.keys() - actual.keys()),
        surplus=sorted(actual.keys() - example.keys()),
        empty=[name for name in sorted(actual) if not actual[name]],
        same=[name for name in both if actual[name] and actual[name] == example[name]],
    )
