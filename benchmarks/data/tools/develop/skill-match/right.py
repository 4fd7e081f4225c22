"""Applications by skills."""

import re

from pydantic import BaseModel

TOOL = {
    "name": "skill_match",
    "description": "Which of the wanted skills are named in applications, as whole words in any case, and who has the most of them",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    applications: dict[str, str]
    skills: list[str]


class Output(BaseModel):
    found: dict[str, list[str]]
    best: list[str]
    nobody: list[str]


def words(text: str) -> set[str]:
    return set(re.findall(r"[\w+#]+", text.lower()))


def run(input: Input) -> Output:
    """A word is of letters, digits, + and #. The best are all who have most, if that is any; nobody has what is named last."""
    found = {}
    for name, text in input.applications.items():
        told = words(text)
        found[name] = [skill for skill in input.skills if skill.lower() in told]
    most = max((len(skills) for skills in found.values()), default=0)
    best = sorted(name for name, skills in found.items() if most and len(skills) == most)
    nobody = [skill for skill in input.skills if not any(skill in skills for skills in found.values())]
    return Output(found=found, best=best, nobody=nobody)
