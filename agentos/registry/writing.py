"""The one way in which ``main`` moves: validate, number, commit, compare-and-swap, tag."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

import pygit2
from pygit2.enums import MergeFlag

from agentos.domain import Kind, ResourceId, Snapshot, dataclass
from agentos.errors import Conflict, ErrorKind, Invalid, to_type
from agentos.registry.git import external_commits, reading, versions
from agentos.registry.git.repository import EMPTY_TREE, MAIN, Repository
from agentos.resources import examine, missing_references, read
from agentos.resources.documents import (
    CONCERNED,
    DOCUMENT,
    MAIN_FILE,
    PINS_FILE,
    concerned_by,
    disagreements,
    documents_of,
    form_in,
)

if TYPE_CHECKING:
    from agentos.messages import ToolCard


_REFERENCED = {Kind.AGENT, Kind.HARNESS, Kind.PROMPT, Kind.ENVIRONMENT}


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """What a commit on ``main`` says of itself."""

    message: str
    origin: str  # see domain.Version.origin
    now: datetime
    trailers: Mapping[str, str] = field(default_factory=dict)
    author: str = ""
    merged: pygit2.Oid | None = None  # a second parent: the pushed commit that this one takes in


def advance(
    repository: Repository,
    main: Snapshot | None,
    tree: pygit2.Oid,
    changed: Collection[ResourceId],
    about: CommitInfo,
) -> Snapshot:
    """Move ``main`` to a commit of ``tree``, in which exactly ``changed`` (and pins) may differ.

    Needs the lock. ``main`` is None for the first commit of all. Nothing happens when the tree is
    ``main``'s already. Raises Invalid when a changed resource breaks its rules or an agent would
    lose what it refers to, and Conflict when ``main`` is not where the caller saw it.
    """
    parents: list[pygit2.Oid] = []
    if main is not None:
        parent = repository.commit(main.commit)
        if external_commits.foreign(repository):
            raise Conflict(
                f"Somebody moved main of the registry to {main.commit[:12]} with git itself. A running daemon "
                "takes that in like a push: type ",
                to_type("agentos daemon start"),
                ", then try again",
                kind=ErrorKind.STALE,
            )
        external_commits.note(repository, parent.id)  # these two complete what a killed writer left undone
        versions.record(repository, parent)
        if str(tree) == main.tree and about.merged is None:
            return main
        parents.append(parent.id)
    faults = tree_faults(repository, tree, changed)
    if faults:
        raise Invalid("The change was refused", faults)
    lines = [("Origin", about.origin), *versions.plan(repository, changed, about.origin)]
    own = {"Origin", "Version", "Parent-Version"}
    given = [(key, value) for key, value in about.trailers.items() if key not in own]
    text = versions.message(about.message, [*lines, *given])
    sides = [about.merged] if about.merged else []
    made = repository.write_commit(tree, parents + sides, text, about.now, author=about.author)
    external_commits.announce(repository, made)
    repository.move(MAIN, made, expected=parents[0] if parents else None)
    external_commits.note(repository, made)
    versions.record(repository, repository.commit(made))
    return Snapshot(str(made), str(tree))


def tree_faults(repository: Repository, tree: pygit2.Oid, changed: Collection[ResourceId]) -> list[str]:
    """One sentence for each rule that the changed resources break in the root tree."""
    from agentos.registry import wheels  # much to import, and nothing that reads needs it

    faults: list[str] = []
    for resource in sorted(changed):
        if repository.entry(tree, str(resource)) is None:
            continue
        found = reading.odd_entries(repository, tree, str(resource))
        if not found:
            files = repository.files(tree, str(resource))
            found = [*(examine(resource, files).faults or wheels.faults(files) or _not_text(resource, files))]
        faults += [f"{resource}: {fault}" for fault in found]
    try:
        reading.parse_pins(repository.files(tree, PINS_FILE).get(PINS_FILE, b""))
    except Invalid as error:
        faults.append(str(error))
    if not faults and any(resource.kind in _REFERENCED for resource in changed):
        faults += reference_faults(repository, tree)
    if not faults and any(resource.kind in CONCERNED for resource in changed):
        faults += form_faults(repository, tree, changed)
    return faults


def _not_text(resource: ResourceId, files: Mapping[str, bytes]) -> list[str]:
    """That a prompt or memory is none: asked of what is written alone, for an earlier release let it in."""
    if resource.kind not in (Kind.PROMPT, Kind.MEMORY):
        return []
    try:
        files.get(f"{resource}/{MAIN_FILE[resource.kind]}", b"").decode()
    except UnicodeDecodeError as error:
        return [f"{MAIN_FILE[resource.kind]} is not UTF-8 text (byte {error.start})"]
    return []


def reference_faults(repository: Repository, tree: pygit2.Oid | str) -> list[str]:
    """One sentence for each reference of an agent that leads nowhere."""
    known = [resource for resource, _ in repository.resources(tree) if resource.kind in _REFERENCED]
    return [
        fault
        for agent in known
        if agent.kind is Kind.AGENT
        for fault in missing_references(read(agent, repository.files(tree, str(agent))), known)
    ]


def form_faults(
    repository: Repository, tree: pygit2.Oid | str, changed: Collection[ResourceId] | None = None
) -> list[str]:
    """One sentence for each harness that would meet memories of another form than it reads.

    Where before ``changed`` there were none, only what these may have brought about is looked at.
    """
    names = [resource for resource, _ in repository.resources(tree)]
    if changed is not None:
        names = concerned_by(changed, names)
    return disagreements(documents_of(names, lambda path: repository.files(tree, path)))


# --- How tools are tried before they are let in: a callable that the daemon provides -------------


# Loads the tool files (second argument) among a resource's files (registry path -> content) in a
# sandbox: the cards of those that loaded, and one sentence for each fault.
Load: TypeAlias = "Callable[[Mapping[str, bytes], Sequence[str]], tuple[list[ToolCard], list[str]]]"


def trial(
    resource: ResourceId, files: Mapping[str, bytes], load: Load | None
) -> tuple[list[ToolCard], list[str]]:
    """Examine the resource and load its tools; the cards, and one sentence for each fault."""
    reading = examine(resource, files)
    if reading.resource is None:
        return [], list(reading.faults)
    if load is None or not reading.resource.tools:
        return [], []
    return load(files, reading.resource.tools)


# --- Three-way merging of one resource: somebody else's change beside what was learnt here -------


@dataclass(frozen=True, slots=True)
class MergeResult:
    """``digest`` is the result ("" when it is to be absent) unless there are ``conflicts``."""

    digest: str
    conflicts: tuple[str, ...] = ()


def merge(repository: Repository, base: str, ours: str, theirs: str) -> MergeResult:
    """Merge directories by their tree ids ("" is absent); a conflict is reported, never guessed."""
    if ours in (base, theirs):
        return MergeResult(theirs)
    if theirs == base:
        return MergeResult(ours)
    if not ours or not theirs:
        gone, changed = ("here", "there") if not ours else ("there", "here")
        return MergeResult("", (f"it was removed {gone} and changed {changed}",))
    forms = [_form(repository, side) for side in (ours, theirs)]
    if forms[0] != forms[1]:  # line by line they may fit, and be read by nobody
        told = f"its form is {forms[0]} here and {forms[1]} there: take what is here, and change that"
        return MergeResult("", (told,))
    ancestor, left, right = (repository.tree(side or EMPTY_TREE) for side in (base, ours, theirs))
    # no flags: renames are not guessed either
    index = repository.git.merge_trees(ancestor, left, right, flags=MergeFlag(0))
    if index.conflicts is not None:
        entries = [next(entry for entry in sides if entry is not None) for sides in index.conflicts]
        return MergeResult(
            "", tuple(sorted({f"{entry.path}: changed differently on both sides" for entry in entries}))
        )
    return MergeResult(str(index.write_tree(repository.git)))


def _form(repository: Repository, digest: str) -> int:
    """Of a memory; anything else is merged as it is, whatever it says."""
    tree = repository.tree(digest)
    if MAIN_FILE[Kind.MEMORY] not in tree or DOCUMENT not in tree:
        return 1
    return form_in(repository.blob(tree[DOCUMENT].id, DOCUMENT))


def as_change(digest: str) -> pygit2.Oid | None:
    """A digest as ``Repository.write_tree`` wants it."""
    return pygit2.Oid(hex=digest) if digest else None
