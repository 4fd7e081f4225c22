"""Compares open ports with a list."""

from pydantic import BaseModel

TOOL = {
    "name": "port_audit",
    "description": "Open ports that a list such as '22, 80, 8000-8003' does not allow, and allowed ports that are not open, written as short ranges",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    allowed: str
    open: list[int]


class Output(BaseModel):
    forbidden: list[int]
    closed: str
    count: int


def ports(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        part = part.strip()
        if not part:
            continue
        if "-" in part:
            first, last = (int(end) for end in part.split("-"))
            found.update(range(first, last + 1))
        else:
            found.add(int(part))
    return found


def short(numbers: list[int]) -> str:
    """Numbers in order as a text such as 1-3,7."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    return ",".join("-".join(map(str, span)) for span in spans)


def run(input: Input) -> Output:
    allowed = ports(input.allowed)
    opened = set(input.open)
    return Output(
        forbidden=sorted(opened - allowed),
        closed=short(sorted(allowed - opened)),
        count=len(allowed),
    )
