"""Turns the pages of a reading diary into pages a day."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "reading_diary",
    "description": "How many pages of a book were read on each day, from the page that was reached by each evening; the days that reached the goal, counted from 1 (such as: day 3); how many days passed without reading; and the most pages of a day",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    pages: list[int] = Field(description="The page reached by each evening; the same as before if nothing was read")
    start: int = Field(0, description="The page reached before the first day")
    goal: int = Field(20, ge=1, description="Pages to be read on a day")


class Output(BaseModel):
    read: list[int]
    reached: list[str]
    idle: int
    most: int


def before(pages: list[int], page: int, start: int) -> int:
    """The page that had been reached the evening before."""
    place = pages.index(page)
    return pages[place - 1] if place else start


def run(input: Input) -> Output:
    read = []
    reached = []
    for page in input.pages:
        number = page - before(input.pages, page, input.start)
        read.append(number)
        if number >= input.goal:
            reached.append(f"day {input.pages.index(page) + 1}")
    return Output(read=read, reached=reached, idle=read.count(0), most=max(read, default=0))
