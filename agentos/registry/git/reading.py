"""What is asked of immutable states beside their files: what differs, what is odd or unreadable, what is pinned."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

import pygit2
from pygit2.enums import FileMode

from agentos.errors import Invalid, Unavailable
from agentos.records.identity import KINDS, RESOURCE_NAME, Kind, ResourceId, Snapshot
from agentos.registry.git.repository import FILE_MODES, Repository
from agentos.resources.documents import DEPTH_MAX, FILE_MAX, FILES_MAX, PINS_FILE, RESOURCE_MAX

_ODD = {FileMode.LINK: "is a symbolic link", FileMode.TREE: f"is more than {DEPTH_MAX} levels deep"}
_DEEPEST = DEPTH_MAX - 3  # of a directory in a resource: kind, name and the file itself are levels too


def holds(repository: Repository, root: str | pygit2.Oid, content: Mapping[str, bytes]) -> bool:
    """Whether the regular files of a tree are these and no others; by their hashes, without reading them."""
    tree = repository.tree(root)
    ids = {path: entry.id for path, entry in repository.walk(tree.id, "") if entry.filemode in FILE_MODES}
    return ids.keys() == content.keys() and all(
        pygit2.hash(data) == ids[path] for path, data in content.items()
    )


def readable(repository: Repository, root: str | pygit2.Oid, prefix: str) -> dict[str, bytes]:
    """As ``files``, but a file whose object is missing or corrupt is there with no content."""
    found = repository.entry(root, prefix)
    if not isinstance(found, pygit2.Tree):
        return {}
    contents: dict[str, bytes] = {}
    for path, entry in repository.walk(found.id, prefix + "/"):
        try:
            contents[path] = repository.blob(entry.id, path)
        except Unavailable:
            contents[path] = b""
    return contents


def odd_entries(repository: Repository, root: str | pygit2.Oid, prefix: str) -> list[str]:
    """One sentence for each symbolic link or submodule at or below ``prefix``, and for what is too much to be read.

    Reads no file: somebody may push anything.
    """
    found = repository.entry(root, prefix)
    if found is None:
        return []
    if not isinstance(found, pygit2.Tree):
        return [f"{prefix} must be a directory"]
    faults: list[str] = []
    total = 0
    for count, (path, entry) in enumerate(repository.walk(found.id, prefix + "/", _DEEPEST)):
        if count == FILES_MAX or total > RESOURCE_MAX:
            faults.append(f"it has more than {FILES_MAX} files or {RESOURCE_MAX} bytes")
            break
        if entry.filemode not in FILE_MODES:
            faults.append(f"{path} {_ODD.get(entry.filemode, 'is a submodule')}")
            continue
        size = repository.size(entry.id, path)
        total += size
        if size > FILE_MAX:
            faults.append(
                f"{path.removeprefix(prefix + '/')} has {size} bytes, at most {FILE_MAX} are allowed"
            )
    return faults


def digest(repository: Repository, root: str | pygit2.Oid, resource: ResourceId) -> str:
    """The tree id of the resource's directory, "" when the snapshot has no such resource."""
    found = repository.entry(root, str(resource))
    return str(found.id) if isinstance(found, pygit2.Tree) else ""


def touched(
    repository: Repository, old: str | pygit2.Oid, new: str | pygit2.Oid
) -> tuple[list[ResourceId], list[str]]:
    """Resources that differ between two root trees, and every other path that does."""
    before, after = _children(repository.tree(old)), _children(repository.tree(new))
    changed: list[ResourceId] = []
    others: list[str] = []
    for name in _differing(before, after):
        sides = [side[name] for side in (before, after) if name in side]
        if name not in KINDS or any(mode != FileMode.TREE for _, mode in sides):
            others.append(name)
            continue
        inner = [
            _children(repository.tree(side[name][0])) if name in side else {} for side in (before, after)
        ]
        for child in _differing(*inner):
            whole = RESOURCE_NAME.fullmatch(child) and all(
                side[child][1] == FileMode.TREE for side in inner if child in side
            )
            if whole:
                changed.append(ResourceId(Kind(name), child))
            else:
                others.append(f"{name}/{child}")
    return sorted(changed), others


_Children = Mapping[str, tuple[pygit2.Oid, int]]


def _children(tree: pygit2.Tree) -> _Children:
    return {entry.name or "": (entry.id, entry.filemode) for entry in tree}


def _differing(before: _Children, after: _Children) -> list[str]:
    return sorted({name for name, _ in before.items() ^ after.items()})


def pins(repository: Repository, snapshot: Snapshot) -> dict[str, str]:
    """``kind/name`` -> reason of every pinned resource."""
    return parse_pins(repository.files(snapshot.tree, PINS_FILE).get(PINS_FILE, b""))


def parse_pins(content: bytes) -> dict[str, str]:
    """The table ``pinned`` of registry.toml; raises Invalid."""
    try:
        table = tomllib.loads(content.decode()).get("pinned", {})
    except ValueError as error:
        raise Invalid(PINS_FILE, [f"it is not TOML: {error}"]) from None
    if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
        raise Invalid(PINS_FILE, ["'pinned' must map kind/name to a reason"])
    return table
