"""Headers of a mail file."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "mail_unfold",
    "description": "The headers of a mail as one line each, a continued header put together with single spaces; what comes after the first empty line is the body",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    headers: list[str]
    folded: int
    body_lines: int


def run(input: Input) -> Output:
    """A line that begins with white space goes on with the header before it; lines without a colon are passed over."""
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    headers: list[str] = []
    folded = 0
    body = 0
    for number, line in enumerate(lines):
        if not line.strip():
            body = len(lines) - number - 1
            break
        if line[0] in " \t" and headers:
            headers[-1] += " " + line.strip()
            folded += 1
        elif ":" in line:
            name, value = line.split(":", 1)
            headers.append(f"{name.strip()}: {value.strip()}")
    return Output(headers=headers, folded=folded, body_lines=body)
