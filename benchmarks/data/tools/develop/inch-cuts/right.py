"""Lengths in inches."""

from fractions import Fraction

from pydantic import BaseModel

TOOL = {
    "name": "inch_cuts",
    "description": "Adds up lengths in inches such as 3 1/2, 3/4 or 12 (perhaps with a \" after them), with the width of the saw for each cut between two pieces; sum in the mixed form, rounded up to a sixteenth",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    pieces: list[str]
    saw: str = "0"


class Output(BaseModel):
    total: str
    longest: str
    millimetres: float


def read(text: str) -> Fraction:
    cleaned = text.strip().rstrip('"')
    value = Fraction(0)
    for part in cleaned.split():
        value += Fraction(part)
    return value


def write(value: Fraction) -> str:
    """Whole inches and what is over, in sixteenths or coarser."""
    sixteenths = -(-value * 16 // 1)
    whole, rest = divmod(sixteenths, 16)
    if not rest:
        return str(whole)
    over = Fraction(rest, 16)
    return f"{whole} {over}" if whole else str(over)


def run(input: Input) -> Output:
    lengths = [read(text) for text in input.pieces]
    cuts = max(0, len(lengths) - 1)
    total = sum(lengths, Fraction(0)) + cuts * read(input.saw)
    return Output(
        total=write(total),
        longest=write(max(lengths, default=Fraction(0))),
        millimetres=round(float(total * Fraction(254, 10)), 1),
    )
