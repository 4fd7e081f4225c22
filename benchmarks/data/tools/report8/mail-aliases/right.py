"""Mailboxes behind the aliases of a mail server."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "mail_aliases",
    "description": "Mailboxes that each alias leads to, each once, from an aliases file: NAME: TARGET, TARGET; a line that is indented goes on with the one before",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of an aliases file; # begins a comment")
    names: list[str] = Field(default=[], description="The aliases that are asked for; none for all")


class Output(BaseModel):
    boxes: dict[str, list[str]]
    empty: list[str] = Field(description="Aliases that lead to no mailbox")


def logical_lines(text: str) -> list[str]:
    """Lines with those joined that go on in the next."""
    lines: list[str] = []
    for line in text.splitlines():
        line = line.partition("#")[0].rstrip()
        if not line:
            continue
        if line[0].isspace() and lines:
            lines[-1] += " " + line.strip()
        else:
            lines.append(line.strip())
    return lines


def read(text: str) -> dict[str, list[str]]:
    aliases: dict[str, list[str]] = {}
    for line in logical_lines(text):
        name, _, targets = line.partition(":")
        found = [target.strip().lower() for target in targets.split(",") if target.strip()]
        aliases.setdefault(name.strip().lower(), []).extend(found)
    return aliases


def expand(aliases: dict[str, list[str]], name: str, seen: set[str]) -> list[str]:
    """Mailboxes behind a name, in the order in which they are met."""
    if name not in aliases:
        return [name]
    if name in seen:
        return []
    seen.add(name)
    boxes: list[str] = []
    for target in aliases[name]:
        for box in expand(aliases, target, seen):
            if box not in boxes:
                boxes.append(box)
    return boxes


def run(input: Input) -> Output:
    aliases = read(Path(input.path).read_text(encoding="utf-8"))
    names = [name.lower() for name in input.names] or list(aliases)
    boxes = {name: expand(aliases, name, set()) for name in names}
    return Output(boxes=boxes, empty=[name for name in names if not boxes[name]])
