"""Adds up hours by work packages."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "work_packages",
    "description": "The hours that were spent on each of some work packages of a project and on the parts of it (2.1.3 is a part of 2.1, and that of 2), the people who worked on each, and the hours that belong to none of them",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: code;person;hours, such as: 2.1.3;Ann;7.5")
    packages: list[str] = Field(description="Codes of work packages, such as 2 or 2.1")


class Output(BaseModel):
    hours: dict[str, float]
    people: dict[str, list[str]]
    elsewhere: float


def belongs(code: str, package: str) -> bool:
    return code == package or code.startswith(package + ".")


def run(input: Input) -> Output:
    """People in the order of the alphabet."""
    hours = dict.fromkeys(input.packages, 0.0)
    people: dict[str, set[str]] = {package: set() for package in input.packages}
    elsewhere = 0.0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        code, person, spent = (part.strip() for part in line.split(";"))
        packages = [package for package in input.packages if belongs(code, package)]
        for package in packages:
            hours[package] += float(spent)
            people[package].add(person)
        if not packages:
            elsewhere += float(spent)
    return Output(
        hours=hours,
        people={package: sorted(names) for package, names in people.items()},
        elsewhere=elsewhere,
    )
