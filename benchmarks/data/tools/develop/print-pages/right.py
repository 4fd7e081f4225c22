"""Page ranges of a print job."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "print_pages",
    "description": "Pages named by a range such as 1-3, 7, 20-",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    pages: str = Field(description="Single pages, ranges, and open ranges: 1-3, 7, 20-")
    last: int = Field(gt=0, description="Number of the document's last page")


class Output(BaseModel):
    pages: list[int]
    sheets: int = Field(description="Sheets when printed on both sides")


def numbers(part: str, last: int) -> range:
    """Pages of one part of the list."""
    start, dash, end = part.strip().partition("-")
    if not dash:
        return range(int(start), int(start) + 1)
    return range(int(start), int(end or last) + 1)


def run(input: Input) -> Output:
    """Each page once, in rising order, none beyond the last."""
    chosen: set[int] = set()
    for part in input.pages.split(","):
        chosen.update(page for page in numbers(part, input.last) if page <= input.last)
    pages = sorted(chosen)
    return Output(pages=pages, sheets=(len(pages) + 1) // 2)
