"""Checks of IBANs."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "iban_check",
    "description": "Check account numbers in the form of IBAN, and write the good ones in groups of four",
    "effects": ["read"],
    "dependencies": [],
}

LENGTHS = {"AT": 20, "BE": 16, "CH": 21, "DE": 22, "ES": 24, "FR": 27, "GB": 22, "NL": 18}


class Input(BaseModel):
    path: str = Field(description="One IBAN a line, with or without spaces, in capitals or not")


class Output(BaseModel):
    good: list[str]
    bad: dict[str, str]


def fault(iban: str) -> str:
    """What is wrong with an IBAN; empty where nothing is."""
    if LENGTHS.get(iban[:2]) is None:
        return "country"
    if len(iban) != LENGTHS[iban[:2]]:
        return "length"
    digits = ""
    for sign in iban[4:] + iban[:4]:
        digits += sign if sign.isdigit() else str(ord(sign) - ord("A") + 10)
    return "" if int(digits) % 97 == 1 else "digits"


def run(input: Input) -> Output:
    good: list[str] = []
    bad: dict[str, str] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        iban = "".join(line.split())
        if not iban:
            continue
        wrong = fault(iban)
        if wrong:
            bad[iban] = wrong
        else:
            good.append(" ".join(iban[at : at + 4] for at in range(0, len(iban), 4)))
    return Output(good=good, bad=bad)
