"""Parts of text messages."""

import string

from pydantic import BaseModel, Field

TOOL = {
    "name": "sms_parts",
    "description": "Length and number of parts of text messages: 160 letters (153 each in several parts) where all are in the simple set, else 70 (67 each) units of UTF-16; and the price at some cents a part",
    "effects": ["pure"],
    "dependencies": [],
}


SIMPLE = set(string.ascii_letters + string.digits + " \n!#$%&'()*+,-./:;<=>?@_äöüÄÖÜßàèéùìòñÑå£")


class Input(BaseModel):
    texts: list[str]
    cents: int = Field(9, ge=0)


class Output(BaseModel):
    lengths: list[int]
    parts: list[int]
    cents: int


def measure(text: str) -> tuple[int, int]:
    """Length in units, and the number of parts."""
    if set(text) <= SIMPLE:
        length, single, each = len(text), 160, 153
    else:
        length, single, each = len(text.encode("utf-16-le")) // 2, 70, 67
    if length <= single:
        return length, 1
    return length, -(-length // each)


def run(input: Input) -> Output:
    measured = [measure(text) for text in input.texts]
    parts = [count for _, count in measured]
    return Output(
        lengths=[length for length, _ in measured],
        parts=parts,
        cents=sum(parts) * input.cents,
    )
