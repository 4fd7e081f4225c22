"""Records as CSV text."""

from pydantic import BaseModel

TOOL = {
    "name": "csv_export",
    "description": "Writes records as CSV: a cell with the separator, a quotation mark or a line break stands in quotation marks, and a quotation mark in it is doubled",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    records: list[dict[str, str]]
    separator: str = ","


class Output(BaseModel):
    text: str
    columns: list[str]
    quoted: int


def run(input: Input) -> Output:
    """Columns in the order in which they are first seen; a record without one has an empty cell."""
    columns: list[str] = []
    for record in input.records:
        columns += [name for name in record if name not in columns]
    quoted = 0
    lines = []
    for cells in [dict(zip(columns, columns, strict=True)), *input.records]:
        line = []
        for column in columns:
            cell = cells.get(column, "")
            if any(mark in cell for mark in (input.separator, '"')):
                cell = '"' + cell.replace('"', '""') + '"'
                quoted += 1
            line.append(cell)
        lines.append(input.separator.join(line))
    return Output(text="\n".join(lines) + "\n", columns=columns, quoted=quoted)
