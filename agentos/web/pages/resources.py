"""Resources: every kind with its status; the timeline of one, what each version changed, and who wrote which line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher

from agentos.domain import Evolution, EvolutionState, ResourceId, Snapshot, Version
from agentos.errors import NotFound, Unavailable
from agentos.resources import parse_id
from agentos.resources.documents import MAIN_FILE
from agentos.web.context import WebContext
from agentos.web.pages.diffs import EditedFile, side_by_side

_RUNS = 200  # of which the share that passed is told
_VERSIONS_MAX = 100  # the newest; what is older is told as of the oldest of them
_LINES_MAX = 3_000


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
    """With the newest runs, each counted for the version that it had."""
    counts = {version.number: [0, 0] for version in versions}
    digests: dict[str, str] = {}
    for run in site.reader.recent_runs(str(resource), _RUNS):
        commit = run.snapshot.commit
        if commit not in digests:
            digests[commit] = digests_at(site, run.snapshot).get(str(resource), "")
        if (had := version_then(versions, digests[commit], run.started_at)) is not None:
            one = counts[had.number]
            one[0] += 1
            one[1] += run.passed
    for version in versions:
        yield VersionLine(version, *counts[version.number])


def version_then(versions: Sequence[Version], digest: str, at: datetime) -> Version | None:
    """The version with this content: of several that are alike, as after a revert, the newest that was there then."""
    alike = [version for version in versions if version.digest and version.digest == digest]
    there = (version for version in alike if version.created_at <= at)
    return next(there, alike[-1] if alike else None)


def digests_at(site: WebContext, snapshot: Snapshot) -> Mapping[str, str]:
    """Of every resource; none where the registry was restored from before the snapshot."""
    try:
        return {str(name): value for name, value in site.registry.digests(snapshot).items()}
    except Unavailable:
        return {}


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


# --- who wrote which line ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BlamedLine:
    """A line with the version that brought it. ``first``: the line above it came with another one."""

    number: int
    text: str
    version: Version
    first: bool


@dataclass(frozen=True, slots=True)
class Blame:
    """A file, line by line."""

    name: str
    path: str
    lines: Sequence[BlamedLine]
    files: Sequence[str]  # that there are to choose from
    cut: bool  # it has more lines, or more versions, than were looked at


def blame(site: WebContext, name: str, path: str = "") -> Blame:
    """Of a file of the resource, its main one unless said. Raises NotFound."""
    resource = parse_id(name)
    path = path or f"{resource}/{MAIN_FILE[resource.kind]}"
    versions = [it for it in site.registry.versions(resource) if it.digest]
    files = sorted(site.registry.files(site.registry.stable(), str(resource)))
    if not versions or path not in files:
        raise NotFound(f"{resource} has no file {path[:200]!r}.")
    owned: list[tuple[str, Version]] = []
    for version in versions[:_VERSIONS_MAX][::-1]:
        snapshot = site.registry.repository.snapshot(version.commit)
        data = site.registry.files(snapshot, path).get(path, b"")
        owned = _next(owned, data.decode("utf-8", "replace").splitlines()[:_LINES_MAX], version)
    lines = [
        BlamedLine(number, text, version, number == 1 or owned[number - 2][1].number != version.number)
        for number, (text, version) in enumerate(owned, 1)
    ]
    return Blame(str(resource), path, lines, files, len(lines) == _LINES_MAX or len(versions) > _VERSIONS_MAX)


def _next(
    owned: Sequence[tuple[str, Version]], lines: Sequence[str], version: Version
) -> list[tuple[str, Version]]:
    """What stays keeps its version; what is new has this one."""
    found: list[tuple[str, Version]] = []
    matcher = SequenceMatcher(None, [text for text, _ in owned], lines, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        found += owned[i1:i2] if tag == "equal" else [(text, version) for text in lines[j1:j2]]
    return found
