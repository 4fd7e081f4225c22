"""Who gets a place in a course, and who waits."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "course_waitlist",
    "description": "Who gets one of the places of a course, and who waits at which place, in the order in which people signed up; who has not paid is passed over, and two people may have the same name: each entry counts for itself",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: name,yes or no (whether it is paid)")
    places: int = Field(ge=0)


class Output(BaseModel):
    taken: list[str]
    waiting: list[str]
    unpaid: int


def signed_up(path: str) -> list[tuple[str, bool]]:
    entries = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            name, paid = line.rsplit(",", 1)
            entries.append((name.strip(), paid.strip().lower() == "yes"))
    return entries


def run(input: Input) -> Output:
    entries = signed_up(input.path)
    names = [name for name, paid in entries if paid]
    taken: list[str] = []
    waiting: list[str] = []
    for name in names:
        position = names.index(name)
        if position < input.places:
            taken.append(name)
        else:
            waiting.append(f"{position - input.places + 1}. {name}")
    return Output(taken=taken, waiting=waiting, unpaid=len(entries) - len(names))
