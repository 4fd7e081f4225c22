"""Checks of membership numbers."""

import re
from collections import Counter
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "member_numbers",
    "description": "Checks the membership numbers of a list: a number is M, S or F, a hyphen and four digits, and nothing more; says how many members each kind has, which lines are wrong, and which numbers occur more than once",
    "effects": ["read"],
    "dependencies": [],
}

NUMBER = re.compile(r"([MSF])-[0-9]{4}")
KINDS = {"M": "member", "S": "student", "F": "friend"}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: number,name")


class Output(BaseModel):
    kinds: dict[str, int]
    wrong: list[str]
    twice: list[str]


def split(line: str) -> tuple[str, str]:
    number, _, name = line.partition(",")
    return number.strip(), name.strip()


def run(input: Input) -> Output:
    kinds = dict.fromkeys(KINDS.values(), 0)
    wrong: list[str] = []
    seen: Counter[str] = Counter()
    for place, line in enumerate(Path(input.path).read_text(encoding="utf-8").splitlines(), start=1):
        number, name = split(line)
        found = NUMBER.fullmatch(number)
        if found is None:
            wrong.append(f"line {place}: {name or '?'}")
            continue
        kinds[KINDS[found.group(1)]] += 1
        seen[number] += 1
    return Output(kinds=kinds, wrong=wrong, twice=sorted(number for number, times in seen.items() if times > 1))
