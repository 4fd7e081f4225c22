"""Which files an ignore list leaves out."""

from fnmatch import fnmatchcase
from typing import NamedTuple

from pydantic import BaseModel

TOOL = {
    "name": "ignore_rules",
    "description": "Split files into ignored and kept by rules like *.log or build/*; a rule with ! keeps files again; the last rule that fits decides; # begins a comment",
    "effects": ["pure"],
    "dependencies": [],
}


class Rule(NamedTuple):
    pattern: str
    ignore: bool


class Input(BaseModel):
    rules: str
    files: list[str]


class Output(BaseModel):
    ignored: list[str]
    kept: list[str]
    rules: int


def parse(text: str) -> list[Rule]:
    rules = []
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            rules.append(Rule(line.removeprefix("!"), not line.startswith("!")))
    return rules


def is_ignored(file: str, rules: list[Rule]) -> bool:
    for rule in rules:
        if fnmatchcase(file, rule.pattern):
            return rule.ignore
    return False


def run(input: Input) -> Output:
    rules = parse(input.rules)
    ignored = sorted(file for file in input.files if is_ignored(file, rules))
    return Output(
        ignored=ignored,
        kept=sorted(set(input.files) - set(ignored)),
        rules=len(rules),
    )
