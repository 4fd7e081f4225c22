"""Lines added and removed by folder."""

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "numstat_folders",
    "description": "Lines that commits added and removed in each folder, from git log --numstat",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Output of git log --numstat --format='commit %h %an'")
    author: str = Field("", description="Only commits of this author")


class Output(BaseModel):
    added: dict[str, int]
    removed: dict[str, int]
    files: int
    commits: int


@dataclass
class Totals:
    added: dict[str, int] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    commits: int = 0

    def count(self, added: str, removed: str, path: str) -> None:
        folder = path.rpartition("/")[0] or "."
        self.files.add(path)
        self.added[folder] = self.added.get(folder, 0) + int(added)
        self.removed[folder] = self.removed.get(folder, 0) + int(removed)


def run(input: Input) -> Output:
    totals = Totals()
    wanted = False
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.startswith("commit "):
            _, _, author = line.split(" ", 2)
            wanted = input.author in ("", author)
            totals.commits += wanted
        elif wanted and line.count("\t") == 2:
            totals.count(*line.split("\t"))
    return Output(
        added=totals.added, removed=totals.removed, files=len(totals.files), commits=totals.commits
    )
