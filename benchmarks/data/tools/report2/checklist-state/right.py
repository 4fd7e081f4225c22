"""How far the lists of a Markdown file are done."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "checklist_state",
    "description": "How far the check lists of a Markdown file are done: done and all items under each heading, and what is open; an item is done with an x in its box, small or capital",
    "effects": ["read"],
    "dependencies": [],
}

ITEM = re.compile(r"\s*[-*] \[([ xX])\] (.*)")


class Input(BaseModel):
    path: str = Field(description="A Markdown file with headings of ## and items of - [ ]")


class Output(BaseModel):
    sections: list[str]
    open: list[str]


@dataclass
class Section:
    title: str
    done: int = 0
    open: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return f"{self.title}: {self.done}/{self.done + len(self.open)}"


def sections(path: str) -> list[Section]:
    found = [Section("top")]
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            found.append(Section(line[3:].strip()))
        elif item := ITEM.match(line):
            mark, text = item.groups()
            if mark in "xX":
                found[-1].done += 1
            else:
                found[-1].open.append(text.strip())
    return [section for section in found if section.done or section.open]


def run(input: Input) -> Output:
    found = sections(input.path)
    return Output(sections=[section.text for section in found], open=[text for section in found for text in section.open])
