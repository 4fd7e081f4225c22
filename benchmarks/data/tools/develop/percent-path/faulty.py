"""File names in web addresses."""

import re

from pydantic import BaseModel

TOOL = {
    "name": "percent_path",
    "description": "Writes file names in the form for a web address: letters, digits and - _ . ~ / as they are, every other byte of UTF-8 as % and two capital hexadecimal digits, and reads such names",
    "effects": ["pure"],
    "dependencies": [],
}

PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~/"


class Input(BaseModel):
    names: list[str] = []
    coded: list[str] = []


class Output(BaseModel):
    coded: list[str]
    names: list[str]
    longest: int


def encode(name: str) -> str:
    return "".join(chr(byte) if byte in PLAIN else f"%{byte:X}" for byte in name.encode())


def decode(text: str) -> str:
    """Small hexadecimal digits are read as well; a % without two digits stays."""
    raw = re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), text.encode())
    return raw.decode(errors="replace")


def run(input: Input) -> Output:
    coded = [encode(name) for name in input.names]
    return Output(
        coded=coded,
        names=[decode(text) for text in input.coded],
        longest=max(map(len, coded), default=0),
    )
