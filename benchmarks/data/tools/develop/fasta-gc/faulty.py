"""GC content of the records of a FASTA file."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "fasta_gc",
    "description": "The share of G and C (percent of all letters, one decimal) of each record of a FASTA file that has at least some letters (always at least one), and the longest one; names end at the first space",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    least: int = Field(0, ge=0, description="Shorter records are left out")


class Output(BaseModel):
    gc: dict[str, float]
    longest: str | None


def records(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    name, letters = "", ""
    for line in text.splitlines():
        line = line.strip()
        if line.startswith(">"):
            if name:
                found[name] = letters
            name, letters = line[1:].split()[0], ""
        else:
            letters += line.upper()
    return found


def share(letters: str) -> float:
    return round(100 * sum(letters.count(letter) for letter in "GC") / len(letters), 1)


def run(input: Input) -> Output:
    every = records(Path(input.path).read_text(encoding="utf-8"))
    kept = {name: letters for name, letters in every.items() if len(letters) >= max(1, input.least)}
    return Output(
        gc={name: share(letters) for name, letters in kept.items()},
        longest=max(kept, key=lambda name: len(kept[name]), default=None),
    )
