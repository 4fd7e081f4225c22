"""Names of spreadsheet columns."""

from string import ascii_uppercase

from pydantic import BaseModel, Field

TOOL = {
    "name": "column_letters",
    "description": "Names of a spreadsheet's cells from the numbers of their columns and a row: A for 1, Z for 26, AA for 27, ZZ for 702, AAA for 703 and so on; and the widest name",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    numbers: list[int]
    row: int = Field(1, ge=1)


class Output(BaseModel):
    cells: list[str]
    widest: str | None


def letters(number: int) -> str:
    before, place = divmod(number - 1, 26)
    last = ascii_uppercase[place]
    return chr(ord("A") + before - 1) + last if before else last


def run(input: Input) -> Output:
    for number in input.numbers:
        if number < 1:
            raise ValueError(f"there is no column {number}")
    cells = [f"{letters(number)}{input.row}" for number in input.numbers]
    return Output(cells=cells, widest=max(cells, key=len, default=None))
