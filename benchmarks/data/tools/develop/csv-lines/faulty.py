"""Rows as lines of CSV."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "csv_lines",
    "description": "Write rows as lines of CSV: a field is put in quotation marks only if it holds the separator, a quotation mark, a line break or a space at its ends; marks within are doubled",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    rows: list[list[str]]
    separator: str = Field(",", min_length=1, max_length=1)


class Output(BaseModel):
    lines: list[str]
    quoted: int
    width: int


class Writer:
    def __init__(self, separator: str) -> None:
        self.separator = separator
        self.quoted = 0

    def field(self, text: str) -> str:
        special = (self.separator, "\n", "\r")
        if text == text.strip() and not any(mark in text for mark in special):
            return text
        self.quoted += 1
        return '"' + text + '"'

    def line(self, row: list[str]) -> str:
        return self.separator.join(self.field(text) for text in row)


def run(input: Input) -> Output:
    writer = Writer(input.separator)
    width = max(map(len, input.rows), default=0)
    lines = []
    for row in input.rows:
        padded = row + [""] * (width - len(row))
        lines.append(writer.line(padded))
    return Output(lines=lines, quoted=writer.quoted, width=width)
