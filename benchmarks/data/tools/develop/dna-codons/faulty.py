"""Codons of a strand."""

from collections import Counter

from pydantic import BaseModel, Field

TOOL = {
    "name": "dna_codons",
    "description": "Whole codons of a DNA sequence in a reading frame, the share of G and C, and the opposite strand",
    "effects": ["pure"],
    "dependencies": [],
}

PAIR = str.maketrans("ACGT", "TGCA")
STOPS = ("TAA", "TAG", "TGA")


class Input(BaseModel):
    sequence: str
    frame: int = Field(0, ge=0, le=2)


class Output(BaseModel):
    codons: list[str]
    first_stop: int | None
    gc: float
    opposite: str
    most: str | None


def run(input: Input) -> Output:
    strand = "".join(input.sequence.split()).upper()
    codons = []
    for i in range(input.frame, len(strand) - 3, 3):
        codons.append(strand[i : i + 3])

    first_stop = None
    for number, codon in enumerate(codons):
        if codon in STOPS:
            first_stop = number
            break

    counts = Counter(codons)
    return Output(
        codons=codons,
        first_stop=first_stop,
        gc=round(sum(base in "GC" for base in strand) / max(len(strand), 1), 3),
        opposite=strand.translate(PAIR)[::-1],
        most=min(counts, key=lambda codon: (-counts[codon], codon), default=None),
    )
