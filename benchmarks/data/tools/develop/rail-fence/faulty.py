"""The rail fence cipher."""

from itertools import cycle, islice

from pydantic import BaseModel, Field

TOOL = {
    "name": "rail_fence",
    "description": "Encode or decode a text by the rail fence cipher: letters go down and up in a zigzag over some rails, which are read one after another",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    text: str
    rails: int = Field(3, ge=1)
    decode: bool = False


class Output(BaseModel):
    text: str
    rails: list[str]


def zigzag(length: int, rails: int) -> list[int]:
    """The rail of each letter."""
    down = list(range(rails))
    return list(islice(cycle(down), length))


def run(input: Input) -> Output:
    text = input.text
    rail_of = zigzag(len(text), input.rails)
    order = sorted(range(len(text)), key=lambda place: rail_of[place])
    if input.decode:
        letters = dict(zip(order, text))
        text = "".join(letters[place] for place in range(len(text)))
        done = text
    else:
        done = "".join(text[place] for place in order)
    lines = [[] for _ in range(input.rails)]
    for place, rail in enumerate(rail_of):
        lines[rail].append(text[place])
    return Output(text=done, rails=["".join(line) for line in lines])
