"""Groups of people who know one another."""

from pydantic import BaseModel

TOOL = {
    "name": "friend_groups",
    "description": "Groups of people who are connected by pairs of friends (also over others), each in alphabetical order and the largest group first, then by the first name; people of no pair are alone",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    people: list[str]
    friends: list[tuple[str, str]]


class Output(BaseModel):
    groups: list[list[str]]
    alone: int
    largest: int


class Groups:
    def __init__(self) -> None:
        self.members: dict[str, set[str]] = {}

    def of(self, name: str) -> set[str]:
        return self.members.setdefault(name, {name})

    def join(self, one: str, other: str) -> None:
        self.of(one).add(other)
        self.members[other] = self.of(one)

    def all(self) -> list[list[str]]:
        groups = {tuple(sorted(group)) for group in self.members.values()}
        return [list(group) for group in sorted(groups, key=lambda group: (-len(group), group))]


def run(input: Input) -> Output:
    groups = Groups()
    for name in input.people:
        groups.of(name)
    for one, other in input.friends:
        groups.join(one, other)
    found = groups.all()
    return Output(
        groups=found,
        alone=sum(len(group) == 1 for group in found),
        largest=max(map(len, found), default=0),
    )
