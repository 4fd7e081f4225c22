"""Lines of a group file."""


def members_of(text: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The people and the inner groups that each group's lines name; a group may have several lines."""
    people: dict[str, list[str]] = {}
    inner: dict[str, list[str]] = {}
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, _, entries = line.partition(":")
        mine = people.setdefault(name.strip(), [])
        others = inner.setdefault(name.strip(), [])
        for entry in (part.strip() for part in entries.split(",")):
            if entry.startswith("@"):
                others.append(entry[1:])
            elif entry and entry not in mine:
                mine.append(entry)
    return people, inner
