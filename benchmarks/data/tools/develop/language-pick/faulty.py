"""Chooses a page's language."""

from pydantic import BaseModel

TOOL = {
    "name": "language_pick",
    "description": "Choose among the offered languages by an Accept-Language header: higher q first (1 if not given), then the header's order; en-GB also fits en; q=0 means never; * fits any other",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    header: str
    offered: list[str]


class Output(BaseModel):
    language: str | None
    wanted: list[str]


def parse(header: str) -> list[tuple[str, float]]:
    wishes = []
    for part in header.split(","):
        tag, *options = (piece.strip().lower() for piece in part.split(";"))
        quality = 1.0
        for option in options:
            if option.startswith("q="):
                quality = float(option[2:])
        if tag:
            wishes.append((tag, quality))
    return sorted(wishes, key=lambda wish: -wish[1])


def run(input: Input) -> Output:
    wishes = parse(input.header)
    named = {tag.split("-")[0] for tag, _ in wishes}
    wanted = [tag for tag, quality in wishes if quality >= 0]
    for tag in wanted:
        for language in input.offered:
            if tag == "*" and language.lower() not in named:
                return Output(language=language, wanted=wanted)
            if language.lower() == tag.split("-")[0]:
                return Output(language=language, wanted=wanted)
    return Output(language=None, wanted=wanted)
