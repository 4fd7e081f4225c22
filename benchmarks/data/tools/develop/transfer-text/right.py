"""Texts of bank transfers."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "transfer_text",
    "description": "The names and purposes of bank transfers with the characters that banks take, and no longer than banks take them; counts those that were cut",
    "effects": ["read"],
    "dependencies": [],
}

WRITTEN = {
    "\u00e4": "ae", "\u00f6": "oe", "\u00fc": "ue", "\u00df": "ss", "\u00c4": "Ae", "\u00d6": "Oe",
    "\u00dc": "Ue", "\u00e9": "e", "\u00e8": "e", "&": "+", "\u20ac": "EUR", "\u00e6": "ae",
}  # fmt: skip
TAKEN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-?:().,'+ ")


class Input(BaseModel):
    path: str
    name_length: int = 20
    purpose_length: int = 35


class Output(BaseModel):
    names: list[str]
    purposes: list[str]
    cut: int


def taken(text: str) -> str:
    """Other characters become a space, and several spaces one."""
    letters = (WRITTEN.get(letter, letter) for letter in text)
    return " ".join("".join(part if set(part) <= TAKEN else " " for part in letters).split())


def shortened(text: str, length: int) -> str:
    return taken(text)[:length].rstrip()


def run(input: Input) -> Output:
    """Lines: name, a semicolon, purpose."""
    names, purposes, cut = [], [], 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        name, _, purpose = line.partition(";")
        names.append(shortened(name, input.name_length))
        purposes.append(shortened(purpose, input.purpose_length))
        cut += names[-1] != taken(name) or purposes[-1] != taken(purpose)
    return Output(names=names, purposes=purposes, cut=cut)
