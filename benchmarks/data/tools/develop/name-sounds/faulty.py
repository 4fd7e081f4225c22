"""American Soundex."""

import unicodedata

from pydantic import BaseModel

TOOL = {
    "name": "name_sounds",
    "description": "Soundex codes of names, and the groups of names that sound alike",
    "effects": ["pure"],
    "dependencies": [],
}

GROUPS = ("BFPV", "CGJKQSXZ", "DT", "L", "MN", "R")
CODES = {letter: code for code, letters in enumerate(GROUPS, 1) for letter in letters}


class Input(BaseModel):
    names: list[str]


class Output(BaseModel):
    codes: dict[str, str]
    alike: list[list[str]]


def letters_of(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).upper()
    return "".join(letter for letter in plain if "A" <= letter <= "Z")


def soundex(name: str) -> str:
    letters = letters_of(name)
    if not letters:
        return ""
    code = letters[0]
    last = CODES.get(letters[0])
    for letter in letters[1:]:
        digit = CODES.get(letter)
        if digit is not None and digit != last:
            code += str(digit)
        last = digit
    return code[:4].ljust(4, "0")


def run(input: Input) -> Output:
    codes = {name: soundex(name) for name in input.names}
    groups: dict[str, list[str]] = {}
    for name, code in codes.items():
        groups.setdefault(code, []).append(name)
    return Output(codes=codes, alike=[sorted(group) for group in groups.values() if len(group) > 1])
