"""Who is in which group."""

from pathlib import Path

from _groups import expanded
from _lines import members_of
from pydantic import BaseModel, Field

TOOL = {
    "name": "access_groups",
    "description": "All members of groups that may hold other groups, from lines GROUP: MEMBER, @GROUP, ...",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="One group a line; @NAME stands for the members of another group")
    least: int = Field(default=0, ge=0, description="Leave out groups with fewer members")


class Group(BaseModel):
    name: str
    direct: int = Field(description="Members that its own line names")
    members: list[str]


class Output(BaseModel):
    groups: list[Group]
    people: int


def run(input: Input) -> Output:
    people, inner = members_of(Path(input.path).read_text(encoding="utf-8"))
    groups = []
    for name in people:
        members = expanded(people, inner, name)
        if len(members) >= input.least:
            groups.append(Group(name=name, direct=len(people[name]), members=sorted(members)))
    everybody = {member for group in groups for member in group.members}
    return Output(groups=groups, people=len(everybody))
