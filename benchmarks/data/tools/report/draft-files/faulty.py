"""Compares the drafts of a folder with its final documents."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "draft_files",
    "description": "The titles of documents of which there is only a draft, those with a draft and a final version, and those that never had a draft, each by the alphabet; a title is a file's name without the ending and without the mark of a draft",
    "effects": ["read"],
    "dependencies": [],
}

MARK = "draft-"


class Input(BaseModel):
    path: str = Field(description="The names of the files, one a line; those of drafts begin with draft-")


class Output(BaseModel):
    open: list[str]
    done: list[str]
    undrafted: list[str]


def names(path: str) -> list[str]:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [line.strip().lower() for line in lines if line.strip()]


def stem(name: str) -> str:
    base, dot, _ = name.rpartition(".")
    return base if dot else name


def draft_title(name: str) -> str:
    return stem(name).lstrip(MARK)


def run(input: Input) -> Output:
    """Capitals make no difference."""
    drafts, finals = set(), set()
    for name in names(input.path):
        if name.startswith(MARK):
            drafts.add(draft_title(name))
        else:
            finals.add(stem(name))
    return Output(
        open=sorted(drafts - finals),
        done=sorted(drafts & finals),
        undrafted=sorted(finals - drafts),
    )
