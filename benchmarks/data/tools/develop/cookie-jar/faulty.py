"""Reads the Cookie header of a request."""

from pydantic import BaseModel

TOOL = {
    "name": "cookie_jar",
    "description": "The cookies of a Cookie header by name; the first = ends the name, so a value may hold further ones; of a name that comes twice the first counts",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    header: str


class Output(BaseModel):
    cookies: dict[str, str]
    blank: list[str]
    size: int


def run(input: Input) -> Output:
    cookies: dict[str, str] = {}
    for part in input.header.split(";"):
        part = part.strip()
        if not part:
            continue
        name, value = part.split("=")
        cookies.setdefault(name.strip(), value.strip())
    return Output(
        cookies=cookies,
        blank=sorted(name for name, value in cookies.items() if not value),
        size=sum(len(name) + len(value) for name, value in cookies.items()),
    )
