"""Hardware addresses in one form."""

import re
from collections import Counter

from pydantic import BaseModel

TOOL = {
    "name": "mac_addresses",
    "description": "Write hardware addresses as aa:bb:cc:dd:ee:ff whatever their form (colons, hyphens, dots or nothing between), tell what is none, and count each maker's prefix",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    addresses: list[str]


class Output(BaseModel):
    clean: list[str]
    bad: list[str]
    prefixes: dict[str, int]


def normal(text: str) -> str | None:
    """The address in the usual form, or None where it is no address."""
    digits = re.sub(r"[:\-]", "", text.strip()).lower()
    if not re.fullmatch(r"[0-9a-f]{12}", digits):
        return None
    return ":".join(digits[place : place + 2] for place in range(0, 12, 2))


def run(input: Input) -> Output:
    clean = []
    bad = []
    for text in input.addresses:
        address = normal(text)
        if address is None:
            bad.append(text)
        elif address not in clean:
            clean.append(address)
    prefixes = Counter(address[:8] for address in clean)
    return Output(clean=clean, bad=bad, prefixes=dict(sorted(prefixes.items())))
