"""Cuts texts for fields that count bytes."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "utf8_cut",
    "description": "A text cut to at most so many bytes of UTF-8, its mark included where it was cut; a letter that does not fit as a whole is left out, and a mark that does not fit is dropped",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    text: str
    limit: int = Field(ge=0, description="Bytes that the field holds")
    mark: str = Field("", description="Put after what was cut")


class Output(BaseModel):
    text: str
    bytes: int
    cut: bool


def run(input: Input) -> Output:
    raw = input.text.encode()
    if len(raw) <= input.limit:
        return Output(text=input.text, bytes=len(raw), cut=False)
    mark = input.mark
    if len(mark.encode()) > input.limit:
        mark = ""
    room = input.limit - len(mark.encode())
    kept = raw[:room].decode(errors="ignore") + mark
    return Output(text=kept, bytes=len(kept.encode()), cut=True)
