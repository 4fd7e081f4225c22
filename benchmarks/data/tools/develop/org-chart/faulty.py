"""Lists the people below each manager."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "org_chart",
    "description": "All people below each manager, those below other managers among them, in the order of the alphabet; the people who have nobody above them; and the managers with more people right below them than one should have",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: person;manager, with an empty manager for whoever has none")
    most: int = Field(5, ge=0, description="So many people one should have right below oneself, at most")


class Output(BaseModel):
    people: dict[str, list[str]]
    heads: list[str]
    too_wide: list[str]


def run(input: Input) -> Output:
    """Heads in the order of the file."""
    reports: dict[str, list[str]] = {}
    heads = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        person, manager = (part.strip() for part in line.split(";"))
        if manager:
            reports.setdefault(manager, []).append(person)
        else:
            heads.append(person)
    people = {manager: sorted(reports[manager]) for manager in sorted(reports)}
    too_wide = [manager for manager in people if len(reports[manager]) > input.most]
    return Output(people=people, heads=heads, too_wide=too_wide)
