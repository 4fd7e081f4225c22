"""Letters from a table."""

import csv
import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "mail_merge",
    "description": "Fills a letter with the rows of a table: {{field}}, or {{field|text}} with a text for an empty field; neither case nor spaces around a field's name matter, in the letter or in the table's head; a field that the table does not have stays as it is",
    "effects": ["read"],
    "dependencies": [],
}

FIELD = re.compile(r"\{\{([^{}|]*)(?:\|([^{}]*))?\}\}")


class Input(BaseModel):
    template: str
    table: str


class Output(BaseModel):
    letters: list[str]
    unknown: list[str]
    gaps: int


def run(input: Input) -> Output:
    letter = Path(input.template).read_text(encoding="utf-8")
    unknown: set[str] = set()
    letters = []
    gaps = 0
    with Path(input.table).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            values = {name: (text or "").strip() for name, text in row.items()}
            missing = []

            def fill(found: re.Match[str]) -> str:
                name = found[1]
                if name not in values:
                    unknown.add(name)
                    return found[0]
                if not values[name]:
                    missing.append(name)
                return values[name] or found[2] or ""

            letters.append(FIELD.sub(fill, letter))
            gaps += len(missing)
    return Output(letters=letters, unknown=sorted(unknown), gaps=gaps)
