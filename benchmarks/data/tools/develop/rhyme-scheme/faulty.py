"""Rhyme schemes by spelling."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "rhyme_scheme",
    "description": "The rhyme scheme of poems, by the last letters of their lines",
    "effects": ["read"],
    "dependencies": [],
}

MARKS = ".,;:!?-\"')("


class Input(BaseModel):
    path: str = Field(description="A poem; its verses are divided by empty lines")
    letters: int = Field(3, description="How many of the last letters have to be equal")


class Output(BaseModel):
    schemes: list[str] = Field(description="One for each verse, such as ABAB; letters go on from verse to verse")
    rhymes: int


def ending(line: str, letters: int) -> str:
    word = line.split()[-1].lower()
    return word[-letters:]


def run(input: Input) -> Output:
    found: dict[str, str] = {}
    schemes: list[str] = []
    scheme = ""
    for line in [*Path(input.path).read_text(encoding="utf-8").splitlines(), ""]:
        if line.strip():
            end = ending(line, input.letters)
            found.setdefault(end, chr(ord("A") + len(found) % 26))
            scheme += found[end]
        elif scheme:
            schemes.append(scheme)
            scheme = ""
    return Output(schemes=schemes, rhymes=sum(map(len, schemes)) - len(found))
