"""Names from patterns with braces."""

from pydantic import BaseModel

TOOL = {
    "name": "brace_names",
    "description": "Expand patterns like a{b,c}d or v{1..3}, also nested ones, from left to right; braces without a comma or range stay",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    patterns: list[str]


class Output(BaseModel):
    names: list[str]
    count: int


def closing(text: str, opening: int) -> int:
    depth = 0
    for place in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise ValueError(f"a brace is not closed: {text}")


def choices(inner: str) -> list[str]:
    """The alternatives between two braces."""
    first, dots, last = inner.partition("..")
    if dots and first.isdigit() and last.isdigit():
        return [str(number) for number in range(int(first), int(last) + 1)]
    parts = inner.split(",")
    return [name for part in parts for name in expand(part)] if len(parts) > 1 else []


def expand(text: str) -> list[str]:
    opening = text.find("{")
    if opening < 0:
        return [text]
    end = closing(text, opening)
    inner = text[opening + 1 : end]
    middles = choices(inner) or ["{" + name + "}" for name in expand(inner)]
    return [text[:opening] + middle + tail for middle in middles for tail in expand(text[end + 1 :])]


def run(input: Input) -> Output:
    names = [name for pattern in input.patterns for name in expand(pattern)]
    return Output(names=names, count=len(names))
