"""English ordinal numbers."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "ordinal_list",
    "description": "English ordinals of whole numbers (1st, 2nd, 3rd, 4th, 11th, 21st, 111th), joined",
    "effects": ["pure"],
    "dependencies": [],
}

ENDINGS = {1: "st", 2: "nd", 3: "rd"}


class Input(BaseModel):
    numbers: list[int]
    join: str = Field(", ", description="What stands between two of them")


class Output(BaseModel):
    text: str
    count: int


def ending(number: int) -> str:
    if number in (11, 12, 13):
        return "th"
    return ENDINGS.get(number % 10, "th")


def run(input: Input) -> Output:
    words = []
    for number in input.numbers:
        if number < 0:
            raise ValueError(f"{number} has no ordinal")
        words.append(f"{number}{ending(number)}")
    return Output(text=input.join.join(words), count=len(words))
