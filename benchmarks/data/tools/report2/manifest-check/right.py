"""Whether files are as long as a manifest says."""

import asyncio
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "manifest_check",
    "description": "Checks files against a manifest that tells how many lines each has: which of them are whole, which have another number of lines, and which are missing; so many are read at once as is allowed",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: file number of lines")
    at_once: int = Field(3, ge=1)


class Output(BaseModel):
    whole: list[str]
    differ: list[str]
    missing: list[str]


async def look(name: str, wanted: int) -> tuple[str, str]:
    """A kind of finding, and what is said of the file."""
    file = Path(name)
    if not file.exists():
        return "missing", name
    text = await asyncio.to_thread(file.read_text, encoding="utf-8")
    found = len(text.splitlines())
    return ("whole", name) if found == wanted else ("differ", f"{name}: {found} for {wanted}")


async def look_all(entries: list[tuple[str, int]], at_once: int) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    batch: list[tuple[str, int]] = []
    for entry in entries:
        batch.append(entry)
        if len(batch) == at_once:
            found += await asyncio.gather(*(look(*one) for one in batch))
            batch.clear()
    found += await asyncio.gather(*(look(*one) for one in batch))
    return found


def run(input: Input) -> Output:
    entries = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        name, number = line.rsplit(" ", 1)
        entries.append((name, int(number)))
    findings: dict[str, list[str]] = {"whole": [], "differ": [], "missing": []}
    for kind, text in asyncio.run(look_all(entries, input.at_once)):
        findings[kind].append(text)
    return Output(**findings)
