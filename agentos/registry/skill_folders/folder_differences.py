"""Which way a skills folder and the registry differ: against what was taken in from the folder last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from agentos.domain import Kind, ResourceId
from agentos.programs import LOCK_FILE
from agentos.registry.git import reading
from agentos.registry.git.repository import EMPTY_TREE
from agentos.registry.skill_folders import folder as folders
from agentos.registry.skill_folders.folder import folder_prefix, folder_ref
from agentos.registry.store import Registry

ADOPTED = "adopt.folders"  # memo in the ledger: what `agentos adopt` was told


class DifferenceSide(StrEnum):
    """Which side has what the other has not."""

    REGISTRY = "registry"  # learnt or edited here since; the folder has the old text
    FOLDER = "folder"  # changed there since, and not taken in (yet, or refused)
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class FolderDifference:
    """One skill of a folder. ``ours`` and ``theirs``: its files here and there, by path in the skill."""

    skill: ResourceId
    folder: Path
    ahead: DifferenceSide
    ours: Mapping[str, bytes]
    theirs: Mapping[str, bytes]
    digest: str  # of the skill in the registry


def folder_differences(registry: Registry, places: Sequence[Path]) -> Iterator[FolderDifference]:
    """Of every folder below ``places`` that was taken in and is not what the registry has."""
    stable = registry.stable()
    for place in places:
        for name, taken in sorted(registry.repository.below(folder_prefix(place)).items()):
            found = _difference(registry, stable.tree, place / name, str(taken))
            if found is not None:
                yield found


def _difference(registry: Registry, root: str, folder: Path, taken: str) -> FolderDifference | None:
    skill = ResourceId(Kind.SKILL, folder.name)
    digest = reading.digest(registry.repository, root, skill)
    content = folders.read(folder)
    if not digest or not content.files:
        return None  # retired, or the disk is away
    ours = _files(registry, digest, content.files)
    base = _files(registry, taken, content.files)
    if ours == content.files:
        return None
    ahead = DifferenceSide.REGISTRY if content.files == base else DifferenceSide.BOTH
    if ours == base:
        ahead = DifferenceSide.FOLDER
    return FolderDifference(skill, folder, ahead, ours, content.files, digest)


def _files(registry: Registry, digest: str, there: Mapping[str, bytes]) -> dict[str, bytes]:
    """The lock beside a skill is the registry's own, unless the folder has one."""
    found = dict(reading.files(registry.repository, digest, ""))
    if LOCK_FILE not in there:
        found.pop(LOCK_FILE, None)
    return found


def same_files(registry: Registry, digest: str, there: Mapping[str, bytes]) -> bool:
    """Whether a version of a skill (its digest, "" where it was retired) is what the folder holds."""
    return bool(digest) and _files(registry, digest, there) == there


def taken_in(registry: Registry, difference: FolderDifference) -> None:
    """Note that the folder now holds what the registry has: nothing is taken in from it for that."""
    repository, ref = registry.repository, folder_ref(difference.folder)
    with repository.lock():
        tree = repository.write_tree(EMPTY_TREE, dict(difference.ours))
        repository.move(ref, tree, expected=repository.resolve(ref))
