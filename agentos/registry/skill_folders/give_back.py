"""Gives what was learnt of a skill back to the folder that it came from: as a commit, a patch, or in place.

Somebody else's repository is read and written by pygit2 alone, which runs none of its hooks and filters. What is
not committed there is never written over, and a branch that is checked out is never moved.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from datetime import datetime
from email.utils import format_datetime
from enum import StrEnum
from pathlib import Path

import pygit2
from pygit2.enums import DiffOption, FileMode

from agentos.domain import dataclass, digest
from agentos.errors import Conflict, ErrorKind, UserError, to_type
from agentos.registry.git.repository import EMPTY_TREE
from agentos.registry.skill_folders.folder import DifferenceSide, FolderDifference, ignored, read, taken_in
from agentos.registry.store import Registry

BRANCHES = "agentos/"  # and the skill's name
_AUTHOR = ("agentos", "agentos@localhost")


class GiveBack(StrEnum):
    """How a promoted edit goes back to a folder that was adopted."""

    BRANCH = "branch"  # a commit on a branch of the repository that the folder lies in
    PATCH = "patch"  # a file in the home's folder ``patches``, for `git am`
    IN_PLACE = "in-place"  # the folder's own files
    NONE = "none"


@dataclass(frozen=True, slots=True)
class GiveBackResult:
    """What was written: the branch and the commit, the patch file, or the folder."""

    way: GiveBack
    where: str


def give_back(
    registry: Registry, difference: FolderDifference, way: GiveBack, proof: str, patches: Path
) -> GiveBackResult:
    """Give the registry's text of a skill to its folder. ``proof`` is the commit message.

    Raises Conflict when the folder has something that would be lost, UserError where the way cannot be gone.
    """
    if difference.ahead is not DifferenceSide.REGISTRY:
        raise Conflict(f"{difference.folder} was changed since {difference.skill} was taken from it")
    try:
        if way is GiveBack.PATCH:
            return GiveBackResult(way, str(_patch(registry, difference, proof, patches)))
        return _given(registry, difference, way, proof)
    except (pygit2.GitError, KeyError) as error:  # an object that is missing is a KeyError
        raise UserError(f"The git repository of {difference.folder} cannot be used: {error}") from None


def _given(registry: Registry, difference: FolderDifference, way: GiveBack, proof: str) -> GiveBackResult:
    place = _place(difference.folder)
    if way is GiveBack.BRANCH:
        if place is None:
            raise UserError(
                f"{difference.folder} lies in no git repository; ",
                to_type(f"agentos adopt {difference.folder.parent} --give patch"),
                " writes patch files.",
            )
        return GiveBackResult(way, _commit(*place, difference, proof))
    if way is GiveBack.IN_PLACE:
        if place is not None:
            _require_committed(*place, difference)
        _write(difference)
        taken_in(registry, difference)
        return GiveBackResult(way, str(difference.folder))
    raise UserError(
        f"Nothing is given back to {difference.folder.parent}; ",
        to_type("agentos adopt --give"),
        " changes that.",
    )


def _place(folder: Path) -> tuple[pygit2.Repository, str] | None:
    """The repository that the folder lies in, and the folder's path there."""
    found = pygit2.discover_repository(str(folder))
    repository = pygit2.Repository(found) if found else None
    if repository is None or not repository.workdir:
        return None
    return repository, os.path.relpath(os.path.realpath(folder), os.path.realpath(repository.workdir))


def _require_committed(repository: pygit2.Repository, path: str, difference: FolderDifference) -> None:
    """Raises Conflict unless folder, index and last commit agree: nothing can be lost then."""
    if repository.head_is_unborn:
        raise Conflict(f"{repository.workdir} has no commit yet; commit {difference.folder} first")
    committed = _tree_files(repository, repository.head.peel(pygit2.Tree), path)
    if committed is None:
        raise Conflict(f"{difference.folder} is not committed; commit it first")
    prefix = "" if path == "." else f"{path}/"
    staged = {
        name: blob.data
        for entry in repository.index
        if (name := entry.path.removeprefix(prefix)) != entry.path or not prefix
        if entry.mode != FileMode.COMMIT and not _passed_over(name)  # a submodule's commit lies elsewhere
        if isinstance(blob := repository[entry.id], pygit2.Blob)
    }
    if committed != dict(difference.theirs) or staged != committed:
        if staged == committed and _one_line_ends(committed) == _one_line_ends(difference.theirs):
            raise Conflict(
                f"the files of {difference.folder} have other line ends than what is committed (core.autocrlf, "
                ".gitattributes): nothing is given back there until they are the same"
            )
        raise Conflict(f"{difference.folder} has changes that are not committed; commit them first")


def _one_line_ends(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: data.replace(b"\r\n", b"\n") for name, data in files.items()}


def _tree_files(repository: pygit2.Repository, root: pygit2.Tree, path: str) -> dict[str, bytes] | None:
    try:
        found = root[path] if path != "." else root
    except KeyError:
        return None
    files: dict[str, bytes] = {}

    def walk(tree: pygit2.Tree, prefix: str) -> None:
        for entry in tree:
            name = f"{prefix}{entry.name}"
            if isinstance(entry, pygit2.Tree):
                walk(entry, f"{name}/")
            elif isinstance(entry, pygit2.Blob) and not _passed_over(name):
                files[name] = entry.data

    if isinstance(found, pygit2.Tree):
        walk(found, "")
    return files


def _passed_over(path: str) -> bool:
    return any(ignored(part) for part in path.split("/"))


def _commit(repository: pygit2.Repository, path: str, difference: FolderDifference, proof: str) -> str:
    """A commit on a branch beside what is checked out; neither files nor index are touched."""
    _require_committed(repository, path, difference)
    name = f"{BRANCHES}{difference.skill.name}"
    ref = f"refs/heads/{name}"
    head = repository.head.peel(pygit2.Commit)
    branch = repository.branches.local.get(name)
    parent = head
    if branch is not None:
        if branch.is_checked_out():
            raise Conflict(
                f"the branch {name} of {repository.workdir} is checked out; check out another one",
                kind=ErrorKind.AT_WORK,
            )
        tip = branch.peel(pygit2.Commit)
        if tip.id != head.id and not repository.descendant_of(head.id, tip.id):
            parent = tip  # it has what is not merged yet
    index = pygit2.Index()
    index.read_tree(parent.peel(pygit2.Tree))
    prefix = "" if path == "." else f"{path}/"
    before = {entry.path: entry for entry in index if entry.path.startswith(prefix)}
    for file in set(difference.theirs) - set(difference.ours):
        if prefix + file in before:
            index.remove(prefix + file)
    for file, content in difference.ours.items():
        old = before.get(prefix + file)
        index.add(
            pygit2.IndexEntry(
                prefix + file, repository.create_blob(content), old.mode if old is not None else FileMode.BLOB
            )
        )
    tree = index.write_tree(repository)
    if tree == parent.tree_id:
        return f"{name} ({str(parent.id)[:12]})"
    by = pygit2.Signature(*_AUTHOR)
    try:
        made = repository.create_commit(None, by, by, proof, tree, [parent.id])
        if branch is None:
            repository.references.create(ref, made)
        else:
            branch.set_target(made)  # only where it is as it was found
    except (pygit2.GitError, OSError) as error:  # a lock, or a branch of that name below or above it
        raise UserError(f"No branch could be written in {repository.workdir}: {error}") from None
    return f"{name} ({str(made)[:12]})"


def _patch(registry: Registry, difference: FolderDifference, proof: str, patches: Path) -> Path:
    place = _place(difference.folder)
    prefix = "" if place and place[1] == "." else f"{place[1] if place else difference.folder.name}/"
    repository = registry.repository

    def tree(files: Mapping[str, bytes]) -> pygit2.Tree:
        changes = {prefix + name: data for name, data in files.items()}
        return repository.tree(repository.write_tree(EMPTY_TREE, changes))

    diff = tree(difference.theirs).diff_to_tree(tree(difference.ours), flags=DiffOption.SHOW_BINARY)
    subject, _, body = proof.partition("\n")
    when = format_datetime(datetime.now().astimezone())
    head = (
        f"From {'0' * 40} Mon Sep 17 00:00:00 2001\nFrom: {_AUTHOR[0]} <{_AUTHOR[1]}>\nDate: {when}\n"
        f"Subject: [PATCH] {subject}\n\n{body.strip()}\n---\n\n"
    )
    # bytes, for a file may be in any encoding
    changes = b"".join(patch.data for patch in diff if patch is not None)
    patches.mkdir(mode=0o700, exist_ok=True)
    path = (
        patches / f"{difference.skill.name}-{digest([str(difference.folder), difference.digest])[:8]}.patch"
    )
    path.write_bytes(head.encode() + changes + b"-- \nagentos\n")
    return path


def _write(difference: FolderDifference) -> None:
    """Each file whole or not at all. The folder is read once more: nobody's change is written over."""
    if read(difference.folder).files != dict(difference.theirs):
        raise Conflict(f"{difference.folder} is being changed; try again")
    for name, content in difference.ours.items():
        if difference.theirs.get(name) == content:
            continue
        path = difference.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        _require_inside(path, difference.folder)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=".agentos-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(aside, mode)
            os.rename(aside, path)
        except OSError:
            os.unlink(aside)
            raise
    for name in set(difference.theirs) - set(difference.ours):
        _require_inside(difference.folder / name, difference.folder)
        (difference.folder / name).unlink(missing_ok=True)


def _require_inside(path: Path, folder: Path) -> None:
    """A link that was put in the way since the folder was read leads nowhere else."""
    if path.is_symlink() or path.parent.resolve() != (folder.resolve() / path.relative_to(folder)).parent:
        raise Conflict(f"{path} leads out of {folder}")
