"""Puts an archive of letters in order."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "letter_archive",
    "description": "The letters of an archive from the oldest to the newest (letters of one day in the order of the file), where wanted only those of a given day and later; the day of the latest letter of each sender among them; and the day of the oldest one",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: 31.01.2024;sender;subject")
    since: str | None = Field(None, description="A day of the same form")


class Letter(BaseModel):
    day: str
    sender: str
    subject: str


class Output(BaseModel):
    letters: list[str]
    latest: dict[str, str]
    oldest: str | None


def read(path: str) -> list[Letter]:
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            day, sender, subject = (part.strip() for part in line.split(";"))
            found.append(Letter(day=day, sender=sender, subject=subject))
    return found


def run(input: Input) -> Output:
    letters = read(input.path)
    if input.since is not None:
        letters = [letter for letter in letters if letter.day >= input.since]
    latest: dict[str, str] = {}
    for letter in letters:
        if letter.sender not in latest or letter.day > latest[letter.sender]:
            latest[letter.sender] = letter.day
    letters = sorted(letters, key=lambda letter: letter.day)
    return Output(
        letters=[f"{letter.day} {letter.sender}: {letter.subject}" for letter in letters],
        latest=latest,
        oldest=letters[0].day if letters else None,
    )
