"""Groups within groups."""


def expanded(
    people: dict[str, list[str]],
    inner: dict[str, list[str]],
    name: str,
    above: frozenset[str] = frozenset(),
) -> list[str]:
    """The members of a group and of all groups within it, each once; a group that is not there has none."""
    members = people.get(name, [])
    for other in inner.get(name, []):
        if other in above or other == name:
            continue
        for member in expanded(people, inner, other, above | {name}):
            if member not in members:
                members.append(member)
    return members
