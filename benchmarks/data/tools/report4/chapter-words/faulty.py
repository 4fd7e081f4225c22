"""Words of chapters."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "chapter_words",
    "description": "Words of each chapter of a text, without the notes unless they are asked for",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Chapters begin with '# '; a note is a line in brackets")
    notes: bool = False


class Output(BaseModel):
    chapters: list[str] = Field(description="title: words")
    longest: int


class Chapters:
    """Counts line by line."""

    def __init__(self, notes: bool) -> None:
        self.notes = notes
        self.title: str | None = None
        self.words = 0
        self.found: list[tuple[str, int]] = []

    def line(self, line: str) -> None:
        if line.startswith("# "):
            self.close()
            self.title = line[2:].strip()
        elif self.notes or not line.startswith("["):
            self.words += len(line.split())

    def close(self) -> None:
        """Notes the chapter that ends here; what stands before the first one is none."""
        if self.title is not None:
            self.found.append((self.title, self.words))


def run(input: Input) -> Output:
    chapters = Chapters(input.notes)
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        chapters.line(line)
    chapters.close()
    return Output(
        chapters=[f"{title}: {words}" for title, words in chapters.found],
        longest=max((words for _, words in chapters.found), default=0),
    )
