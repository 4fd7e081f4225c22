"""Transposes the chords of a song; the answer is written with sharps."""

import re

from pydantic import BaseModel, Field

TOOL = {
    "name": "chord_shift",
    "description": "Transpose chords by half tones",
    "effects": ["pure"],
    "dependencies": [],
}

NOTES = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"]
CHORD = re.compile(r"([A-G])([#b]?)(.*)")


class Input(BaseModel):
    chords: str = Field(description="Chords separated by blanks, such as: Am F#m7 Bb C7")
    steps: int = Field(description="Half tones up (or down, if negative)")


class Output(BaseModel):
    chords: str
    roots: list[str]


def shift(chord: str, steps: int) -> tuple[str, str]:
    match = CHORD.fullmatch(chord)
    if match is None:
        raise ValueError(f"{chord!r} is no chord")
    letter, sign, rest = match.groups()
    index = NOTES.index(letter)
    if sign == "#":
        index += 1
    elif sign == "b":
        index -= 1
    root = NOTES[(index + steps) % len(NOTES)]
    return root, root + rest


def run(input: Input) -> Output:
    shifted = [shift(chord, input.steps) for chord in input.chords.split()]
    return Output(chords=" ".join(text for _, text in shifted), roots=sorted({root for root, _ in shifted}))
