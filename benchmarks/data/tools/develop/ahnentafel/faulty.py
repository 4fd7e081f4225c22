"""Words for the numbers of a table of ancestors."""

from pydantic import BaseModel

TOOL = {
    "name": "ahnentafel",
    "description": "Ancestors of a Kekulé table as words from the person: 1 is the person itself, a father has twice the number of the child, a mother one more (4 is father's father, 5 father's mother, 6 mother's father); and the generation, 0 for the person, of the furthest",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    numbers: list[int]


class Output(BaseModel):
    names: list[str]
    furthest: int | None
    women: int


def steps(number: int) -> list[str]:
    """Father or mother, from the person on."""
    found = []
    while number > 1:
        found.append("mother" if number % 2 else "father")
        number //= 2
    return found


def run(input: Input) -> Output:
    names = []
    for number in input.numbers:
        if number < 1:
            raise ValueError(f"there is no ancestor {number}")
        names.append("'s ".join(steps(number)) or "person")
    return Output(
        names=names,
        furthest=max((number.bit_length() - 1 for number in input.numbers), default=None),
        women=sum(number > 1 and number % 2 == 1 for number in input.numbers),
    )
