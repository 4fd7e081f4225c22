"""Letters from a template and a table."""

import csv
import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "letter_merge",
    "description": "Write one letter for each row of a table as letter-N.txt: {column} stands for the row's value, {column|text} for the text where it is empty; name the columns that were empty and had no such text",
    "effects": ["read", "write"],
    "dependencies": [],
}


FIELD = re.compile(r"\{(\w+)(?:\|([^}]*))?\}")


class Input(BaseModel):
    template: str
    people: str


class Output(BaseModel):
    files: list[str]
    missing: dict[str, list[str]]


def fill(template: str, row: dict[str, str], missing: list[str]) -> str:
    def value(match: re.Match[str]) -> str:
        column = match[1]
        found = row.get(column, "").strip()
        if found:
            return found
        missing.append(column)
        return ""

    return FIELD.sub(value, template)


def run(input: Input) -> Output:
    template = Path(input.template).read_text(encoding="utf-8")
    files = []
    empty: dict[str, list[str]] = {}
    with Path(input.people).open(newline="", encoding="utf-8") as handle:
        for number, row in enumerate(csv.DictReader(handle), start=1):
            missing: list[str] = []
            file = f"letter-{number}.txt"
            Path(file).write_text(fill(template, row, missing), encoding="utf-8")
            files.append(file)
            if missing:
                empty[file] = missing
    return Output(files=files, missing=empty)
