"""Imposes a booklet of folded sheets."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "booklet_order",
    "description": "The pages on each side of the sheets of a booklet that is folded once (front left, front right, back left, back right; pages counted from 1, blank ones 0), with as few blank pages at its end as make a multiple of four; bound on the right, left and right are swapped",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    pages: int = Field(ge=1)
    right_to_left: bool = Field(False, description="Bound on the right, as Arabic books are")


class Output(BaseModel):
    sheets: list[list[int]]
    blank: int


def sheet(number: int, total: int) -> list[int]:
    """The four pages of a sheet, counted from the outermost, 0."""
    low, high = 2 * number + 1, total - 2 * number
    return [high, low, low + 1, high - 1]


def run(input: Input) -> Output:
    total = (input.pages + 3) // 4 * 4
    sheets = []
    for number in range(total // 4):
        pages = [page if page <= input.pages else 0 for page in sheet(number, total)]
        if input.right_to_left:
            pages = [pages[1], pages[0], pages[3], pages[2]]
        sheets.append(pages)
    return Output(sheets=sheets, blank=total - input.pages)
