"""Courses that a student may take next."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "course_choice",
    "description": "Courses that a student may take, by name: all their prerequisites are done, they are not done themselves, and a place is free (unless told, there is one); and what is missing for the others that have places",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    done: list[str]
    courses: dict[str, list[str]] = Field(description="Of each course its prerequisites")
    places: dict[str, int] = {}


class Output(BaseModel):
    open: list[str]
    missing: dict[str, list[str]]


def ready(needs: list[str], done: set[str]) -> bool:
    return not needs or any(need in done for need in needs)


def run(input: Input) -> Output:
    done = set(input.done)
    free = [
        course for course in sorted(input.courses) if course not in done and input.places.get(course, 1) > 0
    ]
    able = [course for course in free if ready(input.courses[course], done)]
    missing = {course: sorted(set(input.courses[course]) - done) for course in free if course not in able}
    return Output(open=able, missing=missing)
