"""Taking in what a new release ships, beside what was learnt and edited since the last one.

``refs/agentos/shipped`` is the content that ``main`` took in last: the common ancestor of the
merge. Where a resource conflicts, its old entry stays there, so that the conflict is reported again
until a person says ``keep`` or ``take``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pygit2

from agentos.domain import ResourceId, Snapshot, dataclass
from agentos.registry.git import reading
from agentos.registry.git.repository import EMPTY_TREE, SHIPPED, Repository
from agentos.registry.writing import CommitInfo, advance, as_change, form_faults, merge, tree_faults
from agentos.resources.documents import CONCERNED


@dataclass(frozen=True, slots=True)
class Item:
    """What became of one resource that differs between the releases.

    ``action``: ``taken`` (as shipped), ``merged`` (with changes made here), ``retired``,
    ``kept`` (as it is here, for good), ``conflict`` (as it is here, until somebody decides).
    """

    resource: ResourceId
    action: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """The snapshot after it and each resource that the release changed."""

    snapshot: Snapshot
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class UpgradeChoice:
    """How a person settles conflicts: keep what is here, or take what ships."""

    keep: Collection[ResourceId] = ()
    take: Collection[ResourceId] = ()


def upgrade(
    repository: Repository, files: Mapping[str, bytes], choice: UpgradeChoice, about: CommitInfo
) -> Upgrade:
    """Merge the shipped ``files`` (registry path -> content) into ``main`` as one commit.

    Idempotent. Raises Invalid when what ships breaks the rules.
    """
    with repository.lock():
        main = repository.tip()
        old = repository.resolve(SHIPPED)
        before = repository.commit(old).tree_id if old else EMPTY_TREE
        new = repository.write_tree(EMPTY_TREE, dict(files))
        pins = reading.pins(repository, main)
        changes: dict[ResourceId, str] = {}
        items: list[Item] = []
        for resource in reading.touched(repository, before, new)[0]:
            sides = [reading.digest(repository, side, resource) for side in (before, main.tree, new)]
            item, digest = _decide(repository, main, resource, sides, choice)
            if resource not in choice.take and str(resource) in pins and digest != sides[1]:
                item = Item(resource, "conflict", "it is pinned; unpin it, or choose")
                digest = sides[1]
            if digest != sides[1]:
                changes[resource] = digest
            if item.action != "same":
                items.append(item)
        _keep_agreeing(repository, main, changes, items)
        tree = _with(repository, main.tree, changes)
        after = advance(repository, main, tree, [*changes], about)
        open_ = {item.resource for item in items if item.action == "conflict"}
        taken_in = _with(
            repository, new, {resource: reading.digest(repository, before, resource) for resource in open_}
        )
        if str(taken_in) != str(before):
            made = repository.write_commit(taken_in, [old] if old else [], "Shipped content\n", about.now)
            repository.move(SHIPPED, made, expected=old)
        return Upgrade(after, tuple(items))


def outdated(repository: Repository, files: Mapping[str, bytes]) -> list[str]:
    """Names of shipped resources whose content ``main`` has not taken in yet; writes nothing."""
    taken = repository.resolve(SHIPPED)
    if taken is None:
        return []
    tree = repository.commit(taken).tree_id
    names = sorted({"/".join(path.split("/")[:2]) for path in files})
    return [
        name
        for name in names
        if repository.files(tree, name)
        != {path: content for path, content in files.items() if path.startswith(f"{name}/")}
    ]


def _keep_agreeing(
    repository: Repository, main: Snapshot, changes: dict[ResourceId, str], items: list[Item]
) -> None:
    """Leave what ships as it is here where it would read memories of another form than they have."""
    told = form_faults(repository, _with(repository, main.tree, changes))
    for number, item in enumerate(items):
        if told and item.resource.kind in CONCERNED and item.resource in changes:
            del changes[item.resource]
            items[number] = Item(item.resource, "conflict", told[0])


def _decide(
    repository: Repository, main: Snapshot, resource: ResourceId, sides: list[str], choice: UpgradeChoice
) -> tuple[Item, str]:
    """What happens to the resource, and the digest that it gets."""
    base, ours, theirs = sides
    if ours == theirs:
        return Item(resource, "same"), ours
    if resource in choice.take:
        return Item(resource, "taken" if theirs else "retired", "as chosen"), theirs
    if resource in choice.keep:
        return Item(resource, "kept", "as chosen"), ours
    if base and not ours:
        return Item(resource, "kept", "it was retired here"), ours
    merged = merge(repository, base, ours, theirs)
    if merged.conflicts:
        return Item(resource, "conflict", "; ".join(merged.conflicts)), ours
    if merged.digest == theirs:
        return Item(resource, "taken" if theirs else "retired"), theirs
    faults = tree_faults(repository, _with(repository, main.tree, {resource: merged.digest}), [resource])
    if faults:
        return Item(resource, "conflict", f"merged it would be broken: {'; '.join(faults)}"), ours
    return Item(resource, "merged", "with the changes made here"), merged.digest


def _with(repository: Repository, root: str | pygit2.Oid, changes: Mapping[ResourceId, str]) -> pygit2.Oid:
    return repository.write_tree(
        root, {str(resource): as_change(digest) for resource, digest in changes.items()}
    )
