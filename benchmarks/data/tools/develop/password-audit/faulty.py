"""Audits passwords of test accounts."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "password_audit",
    "description": "Which rules each password breaks",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="JSON list of user and password")
    least: int = Field(8, ge=1, description="Characters a password must have")


class Output(BaseModel):
    faults: dict[str, list[str]]
    good: int


def rules(least: int) -> list:
    return [
        ("short", lambda text: len(text) >= least),
        ("no digit", lambda text: any(c.isdigit() for c in text)),
        ("no capital", lambda text: any(c.isupper() for c in text)),
        ("no small letter", lambda text: any(c.islower() for c in text)),
    ]


def broken(password: str, least: int) -> list[str]:
    """Names of all rules that the password breaks."""
    found = []
    for name, holds in rules(least):
        if not holds(password):
            found.append(name)
            return found
    return found


def run(input: Input) -> Output:
    accounts = json.loads(Path(input.path).read_text(encoding="utf-8"))
    faults = {account["user"]: broken(account["password"], input.least) for account in accounts}
    return Output(faults=faults, good=sum(not found for found in faults.values()))
