"""Names of MIDI notes."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "midi_notes",
    "description": "Names of MIDI notes (60 is C4), and the span of a melody in semitones",
    "effects": ["read"],
    "dependencies": [],
}

SHARPS = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"]
FLATS = ["C", "Db", "D", "Eb", "E", "F", "Gb", "G", "Ab", "A", "Bb", "B"]


class Input(BaseModel):
    path: str = Field(description="Numbers from 0 to 127, or r for a rest, divided by white space")
    flats: bool = False


class Output(BaseModel):
    names: list[str]
    span: int
    lowest: str


def name(note: int, flats: bool = False) -> str:
    if not 0 <= note <= 127:
        raise ValueError(f"{note} is no MIDI note")
    octave, step = divmod(note, 12)
    return f"{(FLATS if flats else SHARPS)[step]}{octave - 1}"


def run(input: Input) -> Output:
    notes: list[int] = []
    names = []
    for word in Path(input.path).read_text(encoding="utf-8").split():
        if word.lower() == "r":
            names.append("-")
            continue
        notes.append(int(word))
        names.append(name(notes[-1], input.flats))
    if not notes:
        return Output(names=names, span=0, lowest="")
    return Output(names=names, span=max(notes) - min(notes), lowest=name(min(notes)))
