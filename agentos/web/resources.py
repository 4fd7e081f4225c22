"""Resources: every kind with its status, and the timeline of one with what each version changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentos.domain import Evolution, EvolutionState, ResourceId, Result, Version
from agentos.errors import NotFound
from agentos.resources import MAIN_FILE, parse_id
from agentos.web.context import WebContext
from agentos.web.diffs import side_by_side
from agentos.web.evolutions import EditedFile

_RUNS = 200  # of which the share that passed is told


@dataclass(frozen=True, slots=True)
class ResourceLine:
    """A resource in the list. ``status``: pinned, on probation, retired, or "" for nothing to say."""

    name: str
    kind: str
    status: str
    version: Version | None


@dataclass(frozen=True, slots=True)
class VersionLine:
    """A version, and how the newest runs that got it ended."""

    version: Version
    runs: int
    passed: int


@dataclass(frozen=True, slots=True)
class ResourcePage:
    name: str
    versions: Sequence[VersionLine]  # newest first
    pinned: str | None  # the reason, "" for none given; None where it is not pinned
    text: str
    path: str
    files: Sequence[str]


def resource_lines(site: WebContext) -> list[ResourceLine]:
    """All that runs get now, sorted by kind and name."""
    registry = site.registry
    pinned = registry.pinned()
    watched = {item.resource for item in site.reader.find(Evolution, state=EvolutionState.PROBATION)}
    found = []
    for resource in registry.names(registry.stable()):
        name = str(resource)
        status = "pinned" if name in pinned else "on probation" if name in watched else ""
        found.append(ResourceLine(name, resource.kind.value, status, registry.latest(resource)))
    return found


def resource_page(site: WebContext, name: str) -> ResourcePage:
    """Gather it. Raises NotFound."""
    resource = parse_id(name)
    versions = site.registry.versions(resource)
    if not versions:
        raise NotFound(f"There is no resource {resource}.")
    stable = site.registry.stable()
    files = site.registry.files(stable, str(resource))
    path = f"{resource}/{MAIN_FILE[resource.kind]}"
    return ResourcePage(
        str(resource),
        list(_lines(site, resource, versions)),
        site.registry.pinned().get(str(resource)),
        files.get(path, b"").decode("utf-8", "replace"),
        path,
        sorted(files),
    )


def _lines(site: WebContext, resource: ResourceId, versions: Sequence[Version]) -> Iterator[VersionLine]:
    """With the newest runs, each counted for the version whose content its snapshot has."""
    counts: dict[str, list[int]] = {}
    digests: dict[str, str] = {}
    for run in site.reader.recent_runs(str(resource), _RUNS):
        commit = run.snapshot.commit
        if commit not in digests:
            digests[commit] = site.registry.digests(run.snapshot).get(resource, "")
        one = counts.setdefault(digests[commit], [0, 0])
        one[0] += 1
        one[1] += run.outcome is not None and run.outcome.result is Result.PASSED
    for version in versions:
        runs, passed = counts.get(version.digest, [0, 0]) if version.digest else [0, 0]
        yield VersionLine(version, runs, passed)


def version_difference(site: WebContext, name: str, old: str, new: str) -> list[EditedFile]:
    """What is different between two versions, file by file; ``old`` "" is the empty one. Raises NotFound."""
    resource = parse_id(name)
    before, after = (_content(site, resource, number) for number in (old, new))
    return [
        EditedFile(path, side_by_side(before.get(path, ""), after.get(path, "")))
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
    ]


def _content(site: WebContext, resource: ResourceId, number: str) -> dict[str, str]:
    if not number:
        return {}
    version = site.registry.version(resource, number)
    if version is None:
        raise NotFound(f"There is no version {number[:40]} of {resource}.")
    if not version.digest:
        return {}
    files = site.registry.files(site.registry.repository.snapshot(version.commit), str(resource))
    return {path: data.decode("utf-8", "replace") for path, data in files.items()}
