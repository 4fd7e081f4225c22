"""One mail of an invoice as a row of CSV."""

import csv
import re
from email import policy
from email.parser import BytesParser
from pathlib import Path

from pydantic import BaseModel

TOOL = {"name": "invoice", "description": "An invoice's mail as CSV", "effects": ["read", "write"]}


class Input(BaseModel):
    mail: str


class Output(BaseModel):
    number: str
    total: str


def run(input: Input) -> Output:
    mail = BytesParser(policy=policy.default).parsebytes(Path(input.mail).read_bytes())
    text = mail.get_content()
    number = re.search(r"Invoice (\S+)", text)
    total = re.search(r"Total: ([\d.]+) EUR", text)
    if number is None or total is None:
        raise ValueError("no number or no total")
    with Path(input.mail).with_suffix(".csv").open("w", newline="") as file:
        csv.writer(file).writerows([("from", "number", "total"), (mail["From"], number[1], total[1])])
    return Output(number=number[1], total=total[1])
