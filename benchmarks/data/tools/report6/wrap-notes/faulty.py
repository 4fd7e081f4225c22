"""Text wrapped to a width."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "wrap_notes",
    "description": "Text wrapped to a width, paragraph by paragraph; a word that is longer has a line of its own",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    text: str = Field(description="Paragraphs with an empty line between them")
    width: int = 72
    indent: int = Field(0, description="Blanks before each line, which count")


class Output(BaseModel):
    lines: list[str]
    longest: int
    count: int


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most width characters."""
    lines = []
    line = ""
    for word in text.split():
        if line and len(line) + len(word) > width:
            lines.append(line)
            line = word
        elif line:
            line += " " + word
        else:
            line = word
    if line:
        lines.append(line)
    return lines


def run(input: Input) -> Output:
    margin = " " * input.indent
    lines: list[str] = []
    for number, paragraph in enumerate(input.text.split("\n\n")):
        if number:
            lines.append("")
        lines += [margin + line for line in wrap(paragraph, input.width - input.indent)]
    return Output(
        lines=lines,
        longest=max((len(line) for line in lines), default=0),
        count=sum(bool(line) for line in lines),
    )
