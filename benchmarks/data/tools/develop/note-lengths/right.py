"""Lengths of notes in beats."""

from fractions import Fraction

from pydantic import BaseModel

TOOL = {
    "name": "note_lengths",
    "description": "The length of notes such as 4, 8. or 2.. in beats; each dot adds half of what the one before it added, the first half of the note",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    notes: str
    beat: int = 4


class Output(BaseModel):
    bars: list[float]
    longest: float
    dotted: int


def length(note: str) -> Fraction:
    plain = note.rstrip(".")
    dots = len(note) - len(plain)
    return Fraction(1, int(plain)) * (2 - Fraction(1, 2**dots))


def run(input: Input) -> Output:
    """Bars are parted by | and may be empty; a note of the length of the beat is 1."""
    bars = []
    longest = Fraction(0)
    dotted = 0
    for bar in input.notes.split("|"):
        total = Fraction(0)
        for note in bar.split():
            beats = length(note) * input.beat
            longest = max(longest, beats)
            dotted += note.endswith(".")
            total += beats
        bars.append(float(total))
    return Output(bars=bars, longest=float(longest), dotted=dotted)
