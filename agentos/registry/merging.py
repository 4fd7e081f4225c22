"""Three-way merging of one resource: somebody else's change beside what was learnt here."""

from __future__ import annotations

from dataclasses import dataclass

import pygit2
from pygit2.enums import MergeFlag

from agentos.domain import Kind
from agentos.registry.git.repository import EMPTY_TREE, Repository
from agentos.resources import MAIN_FILE
from agentos.resources.documents import DOCUMENT
from agentos.resources.forms import form_in


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
