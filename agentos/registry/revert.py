"""Undoing: a revert is a plan that can be shown, and then a new version with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pygit2

from agentos.domain import ResourceId, Snapshot, Version
from agentos.errors import Conflict, NotFound
from agentos.registry import reading, versions
from agentos.registry.repository import Repository
from agentos.registry.writing import About, advance, tip


@dataclass(frozen=True, slots=True)
class Plan:
    """What a revert would do to ``base``: resource -> digest that it gets ("" retires it)."""

    base: Snapshot
    tree: str  # the root tree after it
    contents: Mapping[ResourceId, str]
    subject: str
    trailers: Mapping[str, str] = field(default_factory=dict)


def undo_version(repository: Repository, resource: ResourceId, number: str) -> Plan:
    """Plan to give the resource the content that stood before the version.

    Raises NotFound, and Conflict naming the later versions that build on it.
    """
    version = _get(repository, resource, number)
    _nothing_built_on(repository, version)
    return _plan(
        repository,
        {resource: _before(repository, version)},
        f"Revert {resource}@{number}",
        {"Reverts": f"{resource}@{number}"},
    )


def restore_version(repository: Repository, resource: ResourceId, number: str) -> Plan:
    """Plan to give the resource the content of an earlier version, whatever came since."""
    version = _get(repository, resource, number)
    return _plan(
        repository,
        {resource: version.digest},
        f"Restore {resource}@{number}",
        {"Restores": f"{resource}@{number}"},
    )


def undo_evolution(repository: Repository, evolution_id: str) -> Plan:
    """Plan to undo everything that an evolution changed; empty when it is undone already.

    Raises NotFound when no commit carries its trailer, Conflict as ``undo_version``.
    """
    commit = evolution_commit(repository, evolution_id)
    contents: dict[ResourceId, str] = {}
    for resource, number, _ in versions.versions_of(commit):
        version = _get(repository, resource, number)
        last = versions.latest(repository, resource)
        undone = last and versions.said(repository.commit(last.commit)).get("Reverts", [])
        if undone != [evolution_id]:
            _nothing_built_on(repository, version)
            contents[resource] = _before(repository, version)
    return _plan(repository, contents, f"Revert evolution {evolution_id}", {"Reverts": evolution_id})


def carry_out(repository: Repository, plan: Plan, about: About) -> Snapshot:
    """Make the plan true; Conflict when the registry moved since it was made. Needs the lock."""
    main = tip(repository)
    if main != plan.base:
        raise Conflict("The registry moved since the revert was shown; look at it again")
    said = about.message.strip()
    text = f"{plan.subject}: {said}" if said else plan.subject
    told = About(text, about.origin, about.now, {**plan.trailers, **about.trailers}, about.author)
    return advance(repository, main, pygit2.Oid(hex=plan.tree), [*plan.contents], told)


def evolution_commit(repository: Repository, evolution_id: str) -> pygit2.Commit:
    """The commit on ``main`` that promoted the evolution; raises NotFound."""
    for commit in versions.line(repository):
        if versions.said(commit).get("Evolution") == [evolution_id]:
            return commit
    raise NotFound(f"No promoted evolution '{evolution_id}' is in the registry. Try: agentos evolution list")


def _plan(
    repository: Repository, contents: Mapping[ResourceId, str], subject: str, trailers: Mapping[str, str]
) -> Plan:
    main = tip(repository)
    now = {resource: reading.digest(repository, main.tree, resource) for resource in contents}
    changes = {resource: digest for resource, digest in contents.items() if digest != now[resource]}
    tree = repository.write_tree(
        main.tree,
        {str(resource): pygit2.Oid(hex=digest) if digest else None for resource, digest in changes.items()},
    )
    return Plan(main, str(tree), changes, subject, trailers)


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
