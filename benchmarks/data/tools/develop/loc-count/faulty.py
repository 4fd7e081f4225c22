"""Counts the lines of source files."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "loc_count",
    "description": "Lines of code, of comments and empty ones in C files",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    paths: list[str] = Field(description="Files of C; a block comment stands on lines of its own")


class Output(BaseModel):
    code: int
    comments: int
    empty: int
    densest: str | None = Field(description="The file with the largest share of comments")


def count(text: str) -> dict[str, int]:
    found = {"code": 0, "comments": 0, "empty": 0}
    inside = False
    for line in text.splitlines():
        bare = line.strip()
        if inside:
            found["comments"] += 1
            inside = "*/" not in bare
        elif not bare:
            found["empty"] += 1
        elif bare.startswith("//"):
            found["comments"] += 1
        elif bare.startswith("/*"):
            found["comments"] += 1
            inside = True
        else:
            found["code"] += 1
    return found


def run(input: Input) -> Output:
    counts = {path: count(Path(path).read_text(encoding="utf-8")) for path in input.paths}
    shares = {
        path: found["comments"] / max(1, found["comments"] + found["code"])
        for path, found in counts.items()
        if found["comments"]
    }
    return Output(
        code=sum(found["code"] for found in counts.values()),
        comments=sum(found["comments"] for found in counts.values()),
        empty=sum(found["empty"] for found in counts.values()),
        densest=max(shares, key=lambda path: shares[path], default=None),
    )
