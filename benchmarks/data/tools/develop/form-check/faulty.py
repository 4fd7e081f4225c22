"""Mistakes of a form."""

import re

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


def mistake(form: dict[str, str]) -> str | None:
    if len(form.get("name", "").strip()) < 2:
        return "name: too short"
    if not re.fullmatch(r"[^@\s]+@[^@\s]+\.[a-z]{2,}", form.get("email", "").strip()):
        return "email: not an address"
    age = form.get("age", "").strip()
    if not age.isdecimal() or int(age) > 120:
        return "age: not from 0 to 120"
    elif int(age) < 18 and not form.get("guardian", "").strip():
        return "guardian: missing"
    if not re.fullmatch(r"\d{5}", form.get("zip", "").strip()):
        return "zip: not five digits"
    return None


def run(input: Input) -> Output:
    found = mistake(input.form)
    return Output(
        mistakes=[found] if found else [],
        fields=sum(bool(value.strip()) for value in input.form.values()),
        ok=not found,
    )
