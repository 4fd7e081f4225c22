"""Names of triads."""

from pydantic import BaseModel

TOOL = {
    "name": "chord_names",
    "description": "Names the triads of which notes are given from the lowest up: major (C), minor (Cm), diminished (Cdim); where another note than the root is lowest, it is named after a stroke (C/E)",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    chords: list[str]


class Output(BaseModel):
    names: list[str | None]
    unknown: int


STEPS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
KINDS = {(4, 7): "", (3, 7): "m", (3, 6): "dim"}


def pitch(note: str) -> int:
    return (STEPS[note[0].upper()] + note.count("#") - note[1:].count("b")) % 12


def name_of(notes: list[str]) -> str | None:
    """None where it is no triad."""
    pitches = {pitch(note): note for note in reversed(notes)}
    root = notes[0]
    above = tuple(sorted((other - pitch(root)) % 12 for other in pitches if other != pitch(root)))
    if above in KINDS:
        return root + KINDS[above]
    return None


def run(input: Input) -> Output:
    """Notes with hyphens between them; the same note in two octaves is one."""
    names = []
    for chord in input.chords:
        notes = [note.strip() for note in chord.split("-") if note.strip()]
        names.append(name_of(notes) if notes else None)
    return Output(names=names, unknown=names.count(None))
