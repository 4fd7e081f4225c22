"""Checking product codes."""

import re

from pydantic import BaseModel, Field

TOOL = {
    "name": "product_codes",
    "description": "Product codes such as AB-1234, sorted out into good and bad ones",
    "effects": ["pure"],
    "dependencies": [],
}

CODE = re.compile(r"([A-Z]{2})-(\d{4})")


class Input(BaseModel):
    codes: list[str] = Field(description="Spaces around a code do not matter")
    prefixes: list[str] = Field([], description="The only ones that are good; none: all")


class Output(BaseModel):
    good: list[str]
    bad: list[str]
    by_prefix: dict[str, int]


def prefix(code: str) -> str | None:
    """The letters of a good code, None for a bad one."""
    match = CODE.match(code.strip())
    return match[1] if match else None


def run(input: Input) -> Output:
    good, bad = [], []
    by_prefix: dict[str, int] = {}
    for code in input.codes:
        letters = prefix(code)
        if letters is None or (input.prefixes and letters not in input.prefixes):
            bad.append(code.strip())
            continue
        good.append(code.strip())
        by_prefix[letters] = by_prefix.get(letters, 0) + 1
    return Output(good=good, bad=bad, by_prefix=by_prefix)
