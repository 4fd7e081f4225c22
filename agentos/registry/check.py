"""Is the registry whole? Every object, resource, version tag and setting; what is wrong is named."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pygit2

from agentos.domain import ResourceId, Snapshot, dataclass
from agentos.errors import AgentOSError, Unavailable
from agentos.registry.git import external_commits, reading, versions
from agentos.registry.git.repository import MAIN, Repository
from agentos.registry.writing import form_faults, reference_faults
from agentos.resources import examine

# Settings that would run a program, were they obeyed: we override them all, but they say that
# somebody else has written to the configuration.
_DANGEROUS = re.compile(
    r"core\.(fsmonitor|sshcommand|pager|editor|hookspath|alternaterefscommand|gitproxy)|.*\.(command|textconv|"
    r"clean|smudge|process|driver)|diff\.external|gpg\..*|alias\..*|include(if)?\..*|filter\..*|credential\..*",
    re.IGNORECASE,
)
_OURS = {"core.hookspath": "/dev/null", "core.fsmonitor": "false"}
_CLAIMS = ", and nothing of what it says of itself (that this program made it, and why) is true"
_HARMLESS_FSCK = ("dangling ", "notice: ", "Checking ", "unreachable ")
STALE_S = 3_600
_NEWEST = 100  # versions that the newest commits made, as far as `check_newest` looks


@dataclass(frozen=True, slots=True)
class Report:
    """``faults`` need a person; ``warnings`` do not. ``repaired`` counts version tags written again.

    ``assumed`` is what was taken for what a resource does not say as it should, such as a skill made elsewhere: it
    works, and nothing is wrong with the registry.
    """

    resources: int
    faults: tuple[str, ...]
    warnings: tuple[str, ...]
    repaired: int
    assumed: tuple[str, ...] = ()


def check(repository: Repository) -> Report:
    """Look at everything. Reads the whole history once: seconds where it has thousands of commits."""
    try:
        main = repository.tip()
    except Unavailable as error:
        return Report(0, (str(error), *_fsck(repository)), (), 0)
    faults, warnings = _main(repository, main)
    repaired = _versions(repository, versions.line(repository), faults)
    assumed: list[str] = []
    count = 0
    try:
        for resource, tree in repository.resources(main.tree):
            count += 1
            _resource(repository, main, resource, str(tree), (faults, assumed))
        faults += reference_faults(repository, main.tree) + form_faults(repository, main.tree)
    except AgentOSError as error:
        faults.append(str(error))
    faults += [fault for fault in _fsck(repository) if fault not in faults]
    return Report(count, tuple(faults), tuple(warnings), repaired, tuple(assumed))


def check_newest(repository: Repository) -> Report:
    """Look at where ``main`` stands, the settings and what the newest commits made: what a kill or a stray hand leaves.

    Takes as long in a registry of any size. Of the resources none is looked at.
    """
    try:
        main = repository.tip()
    except Unavailable as error:
        return Report(0, (str(error),), (), 0)
    faults, warnings = _main(repository, main)
    repaired = _versions(repository, _newest(repository), faults)
    return Report(0, tuple(faults), tuple(warnings), repaired)


def tampered(repository: Repository) -> Iterator[str]:
    """Tags that were moved to other commits, and objects that stand in for others: no program of ours makes these.

    Looks only; a tag that a kill left unwritten is for ``check`` to make up.
    """
    for ref in repository.git.references:
        if ref.startswith("refs/replace/"):
            yield f"the registry has {ref}, by which git shows another object in the place of one"
    for commit in versions.line(repository):
        for resource, number, _ in versions.versions_of(commit):
            version = versions.get(repository, resource, number)
            if version is not None and version.commit != str(commit.id):
                yield f"the tag {resource}@{number} does not agree with commit {commit.id}"


def references(repository: Repository) -> set[str]:
    """Their names, listed twice: one listing may overlook what is being packed."""
    listings = (repository.run("for-each-ref", "--format=%(refname)").stdout for _ in range(2))
    return {name for listing in listings for name in listing.splitlines()}


def broken_references(repository: Repository) -> set[str]:
    """References whose file cannot be read, or whose object is missing: git packs nothing beside one of them."""
    loose = (path for path in (repository.path / "refs").rglob("*") if path.is_file())
    names = {path.relative_to(repository.path).as_posix() for path in loose if path.suffix != ".lock"}
    wanted = names | references(repository)
    return {name for name in wanted if repository.run("cat-file", "-e", name).returncode}


def leftovers(repository: Repository, now: float | None = None) -> list[Path]:
    """Lock files and half-written objects of writers that were killed (older than an hour)."""
    before = (time.time() if now is None else now) - STALE_S
    found = [*repository.path.glob("*.lock"), *(repository.path / "refs").rglob("*.lock")]
    found += repository.path.glob("objects/*/tmp_obj_*")
    found += repository.path.glob("objects/tmp_obj_*")
    found += repository.path.glob("objects/pack/tmp_*")
    return sorted(path for path in found if path.name != "agentos.lock" and _changed_at(path) < before)


def _changed_at(path: Path) -> float:
    """Never, for one whose writer has come to its end since it was listed."""
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return math.inf


def sweep(repository: Repository, now: float | None = None) -> list[Path]:
    """Remove the leftovers; what was removed."""
    with repository.lock():
        found = leftovers(repository, now)
        for path in found:
            path.unlink(missing_ok=True)
    return found


def _settings(repository: Repository) -> Iterator[str]:
    for entry in repository.git.config:
        name, value = entry.name.lower(), entry.value or ""
        if _DANGEROUS.fullmatch(name) and _OURS.get(name) != value:
            yield f"registry.git/config sets {entry.name} = {value!r}, which this program ignores"


def _main(repository: Repository, main: Snapshot) -> tuple[list[str], list[str]]:
    """What is wrong with the settings and where ``main`` stands: faults and warnings."""
    faults: list[str] = []
    warnings = [*_settings(repository)]
    if external_commits.foreign(repository):
        moved = f"main was moved to {main.commit[:12]} with git itself; the daemon takes that in like a push"
        claims = "Origin" in versions.said(repository.commit(main.commit))
        (faults if claims else warnings).append(f"{moved}{_CLAIMS if claims else ''}")
    return faults, warnings


def _newest(repository: Repository) -> Iterator[pygit2.Commit]:
    """The newest commits, as long as they made few versions together."""
    made = 0
    for commit in versions.line(repository):
        made += max(1, len(versions.versions_of(commit)))
        if made > _NEWEST:
            return
        yield commit


def _versions(repository: Repository, line: Iterator[pygit2.Commit], faults: list[str]) -> int:
    repaired = 0
    try:
        commits = [*line][::-1]
    except AgentOSError as error:
        faults.append(str(error))
        return 0
    if unwritable := repository.unwritable():  # once, not for each commit
        faults.append(f"{unwritable}: version tags that may be missing were not written again")
    for commit in commits:
        if not versions.said(commit).get("Origin"):
            faults.append(f"commit {commit.id} on {MAIN} was not made by this program")
        try:
            if not unwritable:
                with repository.lock():
                    repaired += versions.record(repository, commit)
            faults += _disagreements(repository, commit)
        except AgentOSError as error:
            faults.append(f"commit {commit.id}: {error}")
    return repaired


def _disagreements(repository: Repository, commit: pygit2.Commit) -> Iterator[str]:
    for resource, number, _ in versions.versions_of(commit):
        version = versions.get(repository, resource, number)
        content = reading.digest(repository, commit.tree_id, resource)
        if version is None or (version.commit, version.digest) != (str(commit.id), content):
            yield f"the tag {resource}@{number} does not agree with commit {commit.id}"


def _resource(
    repository: Repository,
    main: Snapshot,
    resource: ResourceId,
    tree: str,
    notes: tuple[list[str], list[str]],
) -> None:
    faults, warnings = notes
    try:
        odd = reading.odd_entries(repository, main.tree, str(resource))
        found = examine(resource, {} if odd else repository.files(main.tree, str(resource)))
        latest = versions.latest(repository, resource)
    except AgentOSError as error:
        faults.append(f"{resource}: {error}")
        return
    faults += [f"{resource}: {fault}" for fault in odd or found.faults]
    warnings += [f"{resource}: {warning}" for warning in found.warnings]
    if latest is None or latest.digest != tree:
        number = latest.number if latest else "none"
        faults.append(f"{resource}: its content is not that of its newest version ({number})")


def _fsck(repository: Repository) -> list[str]:
    done = repository.run("fsck", "--full", "--strict", "--no-dangling", "--no-progress")
    lines = (done.stdout + done.stderr).splitlines()
    return [f"git fsck: {line}" for line in lines if line and not line.startswith(_HARMLESS_FSCK)]
