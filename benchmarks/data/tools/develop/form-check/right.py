"""Mistakes of a form."""

import re
from collections.abc import Iterator

from pydantic import BaseModel

TOOL = {
    "name": "form_check",
    "description": "Check a form: name of 2 letters or more, an e-mail address, an age from 0 to 120 (below 18 with a guardian) and a five-digit zip; all mistakes as field: reason, in this order",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    form: dict[str, str]


class Output(BaseModel):
    mistakes: list[str]
    fields: int
    ok: bool


def mistakes(form: dict[str, str]) -> Iterator[str]:
    if len(form.get("name", "").strip()) < 2:
        yield "name: too short"
    if not re.fullmatch(r"[^@\s]+@[^@\s]+\.[a-z]{2,}", form.get("email", "").strip()):
        yield "email: not an address"
    age = form.get("age", "").strip()
    if not age.isdecimal() or int(age) > 120:
        yield "age: not from 0 to 120"
    elif int(age) < 18 and not form.get("guardian", "").strip():
        yield "guardian: missing"
    if not re.fullmatch(r"\d{5}", form.get("zip", "").strip()):
        yield "zip: not five digits"


def run(input: Input) -> Output:
    found = list(mistakes(input.form))
    return Output(
        mistakes=found,
        fields=sum(bool(value.strip()) for value in input.form.values()),
        ok=not found,
    )
