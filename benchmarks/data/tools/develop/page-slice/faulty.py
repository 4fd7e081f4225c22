"""Pages of a long list, as a web shop shows them."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "page_slice",
    "description": "First and last entry of a page of a list",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    items: int = Field(ge=0)
    size: int = Field(gt=0, description="Entries on a page")
    page: int = Field(1, ge=1)


class Output(BaseModel):
    pages: int
    first: int
    last: int
    links: list[int]


def count_pages(items: int, size: int) -> int:
    """An empty list has one page, too."""
    return items // size + 1


def neighbours(page: int, pages: int) -> list[int]:
    """The first page, the last, and those around this one."""
    return sorted({1, pages} | {near for near in (page - 1, page, page + 1) if 1 <= near <= pages})


def run(input: Input) -> Output:
    pages = count_pages(input.items, input.size)
    page = min(input.page, pages)
    first = (page - 1) * input.size + 1 if input.items else 0
    last = min(page * input.size, input.items)
    return Output(pages=pages, first=first, last=last, links=neighbours(page, pages))
