"""Names of tables for CSV files."""

import re

from pydantic import BaseModel, Field

TOOL = {
    "name": "table_names",
    "description": "The tables that CSV files are loaded into: schema, dot, the file's name without its ending .csv (in any case), in lower case and with one _ for each run of what is no letter from a to z or digit; other files are left out, and names that come twice are listed",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    files: list[str]
    schema_name: str = Field("main", alias="schema")


class Output(BaseModel):
    tables: dict[str, str]
    twice: list[str]
    skipped: list[str]


def table(file: str) -> str:
    base = file.lower().strip(".csv")
    return re.sub(r"[^a-z0-9]+", "_", base)


def run(input: Input) -> Output:
    tables: dict[str, str] = {}
    skipped = []
    for file in input.files:
        if file.lower().endswith(".csv"):
            tables[file] = f"{input.schema_name}.{table(file)}"
        else:
            skipped.append(file)
    names = list(tables.values())
    return Output(
        tables=tables,
        twice=sorted({name for name in names if names.count(name) > 1}),
        skipped=skipped,
    )
