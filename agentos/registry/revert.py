"""Undoing: a revert is a plan that can be shown, and then a new version with a reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pygit2

from agentos.domain import Kind, ResourceId, Snapshot, Version
from agentos.errors import Conflict, NotFound
from agentos.registry.git import reading, versions
from agentos.registry.git.repository import Repository
from agentos.registry.writing import CommitInfo, advance, tip
from agentos.resources.forms import document_of, form_in


@dataclass(frozen=True, slots=True)
class RevertPlan:
    """What a revert would do to ``base``: resource -> digest that it gets ("" retires it)."""

    base: Snapshot
    tree: str  # the root tree after it
    contents: Mapping[ResourceId, str]
    subject: str
    trailers: Mapping[str, str] = field(default_factory=dict)
    set_aside: tuple[str, ...] = ()  # versions of memories that have no place in the older form


def undo_version(repository: Repository, resource: ResourceId, number: str) -> RevertPlan:
    """Plan to give the resource the content that stood before the version.

    With one that brought memories into another form, they go back as well (see ``undo_evolution``).
    Raises NotFound, and Conflict naming the later versions that build on it, or the evolution of which
    it is a part that cannot be undone alone.
    """
    version = _get(repository, resource, number)
    commit = repository.commit(version.commit)
    brought = _brought_over(repository, commit)
    if resource in brought and version.evolution:
        raise Conflict(
            f"{resource}@{number} came with another form of memories and cannot be undone alone. To undo "
            f"all of it: agentos registry revert {version.evolution}"
        )
    made = {resource: number}
    if resource in brought:
        made = {other: its for other, its, _ in versions.versions_of(commit) if other in brought}
    contents, aside = _taken_back(repository, made, brought if resource in brought else {})
    trailers = {"Reverts": f"{resource}@{number}"}
    return _plan(repository, contents, f"Revert {resource}@{number}", trailers, aside)


def restore_version(repository: Repository, resource: ResourceId, number: str) -> RevertPlan:
    """Plan to give the resource the content of an earlier version, whatever came since."""
    version = _get(repository, resource, number)
    return _plan(
        repository,
        {resource: version.digest},
        f"Restore {resource}@{number}",
        {"Restores": f"{resource}@{number}"},
    )


def undo_evolution(repository: Repository, evolution_id: str) -> RevertPlan:
    """Plan to undo everything that an evolution changed; empty when it is undone already.

    Memories that it brought into another form go back with it to what they were, whatever was learnt in
    that form since: ``set_aside`` names those versions, which stay in the history.

    Raises NotFound when no commit carries its trailer, Conflict as ``undo_version``.
    """
    commit = evolution_commit(repository, evolution_id)
    made: dict[ResourceId, str] = {}
    for resource, number, _ in versions.versions_of(commit):
        last = versions.latest(repository, resource)
        undone = last and versions.said(repository.commit(last.commit)).get("Reverts", [])
        if undone != [evolution_id]:
            made[resource] = number
    contents, aside = _taken_back(repository, made, _brought_over(repository, commit))
    subject = f"Revert evolution {evolution_id}"
    return _plan(repository, contents, subject, {"Reverts": evolution_id}, aside)


def carry_out(repository: Repository, plan: RevertPlan, about: CommitInfo) -> Snapshot:
    """Make the plan true; Conflict when the registry moved since it was made. Needs the lock."""
    main = tip(repository)
    if main != plan.base:
        raise Conflict("The registry moved since the revert was shown; look at it again")
    said = about.message.strip()
    text = f"{plan.subject}: {said}" if said else plan.subject
    if plan.set_aside:
        text += "\n\nSet aside, because it has another form: " + ", ".join(plan.set_aside)
    told = CommitInfo(text, about.origin, about.now, {**plan.trailers, **about.trailers}, about.author)
    return advance(repository, main, pygit2.Oid(hex=plan.tree), [*plan.contents], told)


def evolution_commit(repository: Repository, evolution_id: str) -> pygit2.Commit:
    """The commit on ``main`` that promoted the evolution; raises NotFound."""
    for commit in versions.line(repository):
        if versions.said(commit).get("Evolution") == [evolution_id]:
            return commit
    raise NotFound(f"No promoted evolution '{evolution_id}' is in the registry. Try: agentos evolution list")


def _taken_back(
    repository: Repository, made: Mapping[ResourceId, str], brought: Mapping[ResourceId, int]
) -> tuple[dict[ResourceId, str], tuple[str, ...]]:
    """What the resources get when these versions of one commit are undone, and what is set aside for it."""
    contents: dict[ResourceId, str] = {}
    aside: list[str] = []
    tree = tip(repository).tree
    for resource, number in made.items():
        version, last = _get(repository, resource, number), versions.latest(repository, resource)
        if resource.kind is not Kind.MEMORY or resource not in brought:
            _nothing_built_on(repository, version)
        elif _form(repository, tree, resource) != brought[resource]:
            continue  # it was retired, or taken back, since
        elif last and last.number != number:
            aside.append(f"{resource}@{last.number}")
        contents[resource] = _before(repository, version)
    for version in _learnt_since(repository, brought) if contents else ():
        aside.append(f"{version.resource}@{version.number}")
        contents[version.resource] = ""
    return contents, tuple(aside)


def _brought_over(repository: Repository, commit: pygit2.Commit) -> dict[ResourceId, int]:
    """The harnesses and memories that the commit brought to another form, and the one they have since."""
    found: dict[ResourceId, int] = {}
    for resource, _, parent in versions.versions_of(commit):
        if resource.kind in (Kind.HARNESS, Kind.MEMORY) and parent:
            before, after = (_form(repository, one.tree_id, resource) for one in (commit.parents[0], commit))
            if before != after:
                found[resource] = after
    return found


def _learnt_since(repository: Repository, brought: Mapping[ResourceId, int]) -> Iterator[Version]:
    """Further memories that stand on ``main`` in a form that is given up."""
    tree = tip(repository).tree
    for resource, _ in reading.resources(repository, tree) if brought else ():
        last = versions.latest(repository, resource)
        if resource.kind is not Kind.MEMORY or resource in brought or last is None:
            continue
        if _form(repository, tree, resource) in brought.values():
            yield last


def _form(repository: Repository, tree: pygit2.Oid | str, resource: ResourceId) -> int:
    path = document_of(resource)
    return form_in(reading.files(repository, tree, path).get(path, b""))


def _plan(
    repository: Repository,
    contents: Mapping[ResourceId, str],
    subject: str,
    trailers: Mapping[str, str],
    set_aside: tuple[str, ...] = (),
) -> RevertPlan:
    main = tip(repository)
    now = {resource: reading.digest(repository, main.tree, resource) for resource in contents}
    changes = {resource: digest for resource, digest in contents.items() if digest != now[resource]}
    tree = repository.write_tree(
        main.tree,
        {str(resource): pygit2.Oid(hex=digest) if digest else None for resource, digest in changes.items()},
    )
    return RevertPlan(main, str(tree), changes, subject, trailers, set_aside)


def _get(repository: Repository, resource: ResourceId, number: str) -> Version:
    version = versions.get(repository, resource, number)
    if version is None:
        raise NotFound(f"There is no version {resource}@{number}. Try: agentos registry log {resource}")
    return version


def _before(repository: Repository, version: Version) -> str:
    return _get(repository, version.resource, version.parent).digest if version.parent else ""


def _nothing_built_on(repository: Repository, version: Version) -> None:
    later: list[str] = []
    for other in versions.lineage(repository, version.resource):
        if other.number == version.number:
            break
        later.append(other.number)
    if later:
        raise Conflict(
            f"{version.resource}@{version.number} cannot be undone alone: {', '.join(reversed(later))} came "
            f"after it. To go back to an earlier content as a whole: agentos registry revert "
            f"{version.resource} --to {version.parent or version.number}"
        )
