"""Sorts postcodes by country."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "postcode_sort",
    "description": "Postcodes (one a line) by country: nl is four digits, a space and two letters, de five digits, uk one or two letters, one or two digits, a space, a digit and two letters, each in any case and as the whole line; the others are unknown; shown in capitals",
    "effects": ["read"],
    "dependencies": [],
}

FORMS = {
    "nl": re.compile(r"\d{4} [A-Z]{2}"),
    "de": re.compile(r"\d{5}"),
    "uk": re.compile(r"[A-Z]{1,2}\d{1,2} \d[A-Z]{2}"),
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    countries: dict[str, list[str]]
    unknown: list[str]


def country(code: str) -> str | None:
    for name, form in FORMS.items():
        if form.fullmatch(code):
            return name
    return None


def run(input: Input) -> Output:
    countries: dict[str, list[str]] = {}
    unknown = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        code = line.strip().upper()
        if not code:
            continue
        name = country(code)
        if name is None:
            unknown.append(code)
        else:
            countries.setdefault(name, []).append(code)
    return Output(countries={name: countries[name] for name in sorted(countries)}, unknown=unknown)
