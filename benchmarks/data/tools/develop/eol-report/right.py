"""Line ends of a text."""

from pydantic import BaseModel

TOOL = {
    "name": "eol_report",
    "description": "Counts the three kinds of line ends (CRLF, LF, CR) of a text, names the most frequent one, and says whether the last line has an end",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    text: str


class Output(BaseModel):
    counts: dict[str, int]
    main: str | None
    mixed: bool
    ended: bool


def run(input: Input) -> Output:
    """A CR directly before an LF belongs to it. Of equally frequent kinds the one named first in the counts is the main one."""
    text = input.text
    both = text.count("\r\n")
    counts = {
        "crlf": both,
        "lf": text.count("\n") - both,
        "cr": text.count("\r") - both,
    }
    used = [kind for kind, count in counts.items() if count]
    main = max(used, key=lambda kind: counts[kind], default=None)
    return Output(
        counts=counts,
        main=main,
        mixed=len(used) > 1,
        ended=not text or text[-1] in "\r\n",
    )
