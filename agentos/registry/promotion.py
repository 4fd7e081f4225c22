"""Candidates as references, and the only door through which an evolution reaches ``main``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime

import pygit2

from agentos.domain import Kind, Refusal, RefusalKind, ResourceId, Snapshot, Version, dataclass
from agentos.errors import Conflict, ErrorKind, Invalid, NotFound, to_type
from agentos.registry import wheels
from agentos.registry.git import reading, versions
from agentos.registry.git.repository import Repository
from agentos.registry.writing import CommitInfo, advance, tree_faults
from agentos.resources import examine, path_fault, read
from agentos.resources.declarations import is_server, without_server_locks
from agentos.resources.documents import document_of, form_in

CANDIDATES = "refs/candidates/"
CANDIDATE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}")


@dataclass(frozen=True, slots=True)
class Promotion:
    """A commit on ``main`` that says that an evolution brought it about. What it says may be forged."""

    snapshot: Snapshot
    evolution: str
    said: Mapping[str, str]  # its trailers, the first of each name


def promotions(repository: Repository, since: str = "") -> list[Promotion]:
    """Every such commit, newest first; with ``since``, a commit, only those after it."""
    found: list[Promotion] = []
    for commit in versions.line(repository):
        if str(commit.id) == since:
            break
        trailers = versions.said(commit)
        if evolution := versions.first(trailers, "Evolution"):
            said = {key: values[0] for key, values in trailers.items()}
            found.append(Promotion(Snapshot(str(commit.id), str(commit.tree_id)), evolution, said))
    return found


def add_candidate(
    repository: Repository, candidate_id: str, base: Snapshot, files: Mapping[str, str]
) -> Snapshot:
    """See ports.CandidateStore. The commit depends on the arguments alone, so it can be made again.

    What a promotion would refuse for its content is refused here, before anything is spent on it.
    """
    faults = [fault for path in files if (fault := path_fault(path))]
    if not CANDIDATE_ID.fullmatch(candidate_id):
        faults.append(f"the id {candidate_id!r} is not made of letters, digits and hyphens")
    contents: dict[str, bytes] = {}
    for path, text in files.items():
        try:
            contents[path] = text.encode()
        except UnicodeEncodeError:
            faults.append(f"{path!r} holds text that is not Unicode")
    if faults:
        raise Invalid(f"Candidate {candidate_id!r}", faults)
    parent = repository.commit(base.commit)
    if str(parent.tree_id) != base.tree:
        raise Invalid(f"Candidate {candidate_id}", ["its base's tree is not that of the base's commit"])
    with repository.lock():
        tree = repository.write_tree(parent.tree_id, contents)
        if faults := _faults_of(repository, base.tree, tree):
            raise Invalid(f"Candidate {candidate_id}", faults)
        when = datetime.fromtimestamp(parent.commit_time, UTC)
        made = repository.write_commit(tree, [parent.id], f"Candidate {candidate_id}\n", when)
        ref = CANDIDATES + candidate_id
        present = repository.resolve(ref)
        if present not in (None, made):
            raise Conflict(f"There is another candidate {candidate_id} already", kind=ErrorKind.TAKEN)
        if present is None:
            repository.move(ref, made, expected=None)
    return Snapshot(str(made), str(tree))


def promote(repository: Repository, base: Snapshot, candidate: Snapshot, about: CommitInfo) -> Snapshot:
    """See ports.CandidateStore."""
    commit = repository.commit(candidate.commit)
    if str(commit.tree_id) != candidate.tree:
        raise Conflict(
            f"Candidate {candidate.commit[:12]} is not the tree {candidate.tree[:12]} that was judged",
            kind=ErrorKind.MISMATCHED,
        )
    if [str(parent) for parent in commit.parent_ids] != [base.commit]:
        raise Conflict(
            f"Candidate {candidate.commit[:12]} does not stand on {base.commit[:12]}",
            kind=ErrorKind.MISMATCHED,
        )
    if about.trailers.get("Candidate-Tree", candidate.tree) != candidate.tree:
        raise Conflict("The verdict is about another tree than the candidate's", kind=RefusalKind.VERDICT)
    with repository.lock():
        main = repository.tip()
        if main.commit != base.commit:
            return _promoted_before(repository, base, candidate, about)
        changed, others = reading.touched(repository, main.tree, candidate.tree)
        if others:
            raise Conflict(
                f"A candidate may touch resources only, this one touches {', '.join(others)}",
                kind=RefusalKind.SURFACE,
            )
        for resource in changed:
            _may_touch(repository, main, candidate, resource)
        trailers = {**about.trailers, "Candidate-Tree": candidate.tree}
        said = CommitInfo(about.message, about.origin, about.now, trailers)
        return advance(repository, main, commit.tree_id, changed, said)


def why_fixed(repository: Repository, main: Snapshot, resource: ResourceId) -> Refusal | None:
    """See ports.Evolvable."""
    files = repository.files(main.tree, str(resource))
    if not files:
        return Refusal(RefusalKind.NO_RESOURCE, f"{resource} does not exist")
    pinned = reading.pins(repository, main).get(str(resource))
    if pinned is not None:
        told = f"{resource} is pinned" + (f": {pinned}" if pinned else "")
        return Refusal(RefusalKind.PINNED, told)
    if read(resource, files).evolvable:
        return None
    return Refusal(RefusalKind.NOT_EVOLVABLE, f"{resource} says evolvable = false")


def contents(repository: Repository, resource: ResourceId) -> Iterator[tuple[Version, Mapping[str, bytes]]]:
    """Each version of the resource with its files, newest first; without those that retire it."""
    for version in versions.lineage(repository, resource):
        if version.digest:
            tree = repository.snapshot(version.commit).tree
            yield version, repository.files(tree, str(resource))


def _faults_of(repository: Repository, base: str, tree: pygit2.Oid) -> list[str]:
    """One sentence for each reason for which no evolution may bring ``tree`` about on top of ``base``."""
    changed, _ = reading.touched(repository, base, str(tree))
    changes = [_change_fault(repository, base, str(tree), resource) for resource in sorted(changed)]
    return [*filter(None, changes), *tree_faults(repository, tree, changed)]


def _may_touch(repository: Repository, main: Snapshot, candidate: Snapshot, resource: ResourceId) -> None:
    there = repository.files(main.tree, str(resource))
    if there and (fixed := why_fixed(repository, main, resource)):
        raise Conflict(f"No evolution may touch it: {fixed.reason}", kind=fixed.kind)
    if str(resource) in reading.pins(repository, main):
        raise Conflict(f"No evolution may touch it: {resource} is pinned", kind=RefusalKind.PINNED)
    if fault := _change_fault(repository, main.tree, candidate.tree, resource):
        raise Conflict(fault, kind=RefusalKind.SURFACE)


def _change_fault(repository: Repository, base: str, tree: str, resource: ResourceId) -> str:
    """What an evolution may do to no resource, "" when it does not. Of one that cannot be read: ``tree_faults``."""
    before = repository.files(base, str(resource))
    after = repository.files(tree, str(resource))
    if not after:
        return f"An evolution may not retire {resource}"
    if is_server(before) and without_server_locks(before) != without_server_locks(after):
        return f"An evolution may not change the MCP server {resource}, but for wheels that it had before"
    if not wheels.same_needs(before, after) and not _goes_back(repository, resource, before, after):
        return f"An evolution may not change what {resource} depends on, but for wheels that it had before"
    found = examine(resource, after).resource
    shut = found is not None and not found.evolvable
    return f"An evolution may not set evolvable = false in {resource}" if shut else ""


def _goes_back(
    repository: Repository, resource: ResourceId, before: Mapping[str, bytes], after: Mapping[str, bytes]
) -> bool:
    """Whether all that differs is that a person's earlier choice of wheels, all of which are here, holds again."""
    if not wheels.goes_back(before, after, (files for _, files in contents(repository, resource))):
        return False
    lock = wheels.locked(after)
    return lock is not None and not wheels.Wheels(wheels.place(repository.path)).missing(lock)


def _promoted_before(
    repository: Repository, base: Snapshot, candidate: Snapshot, about: CommitInfo
) -> Snapshot:
    evolution = about.trailers.get("Evolution")
    for commit in versions.line(repository):
        if str(commit.id) == base.commit:
            break
        if str(commit.tree_id) != candidate.tree or str(commit.parent_ids[0]) != base.commit:
            continue
        if versions.first(versions.said(commit), "Evolution") == evolution:
            versions.record(repository, commit)
            return Snapshot(str(commit.id), candidate.tree)
    raise Conflict(
        f"The registry moved on from {base.commit[:12]} since the candidate was judged; judge it again",
        kind=ErrorKind.STALE,
    )


# --- Undoing: a revert is a plan that can be shown, and then a new version with a reason ---------


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
            "all of it: ",
            to_type(f"agentos registry revert {version.evolution}"),
            kind=ErrorKind.LATER,
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
    main = repository.tip()
    if main != plan.base:
        raise Conflict(
            "The registry moved since the revert was shown; look at it again", kind=ErrorKind.STALE
        )
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
    raise NotFound(
        f"No promoted evolution '{evolution_id}' is in the registry. Try: ", to_type("agentos evolution list")
    )


def _taken_back(
    repository: Repository, made: Mapping[ResourceId, str], brought: Mapping[ResourceId, int]
) -> tuple[dict[ResourceId, str], tuple[str, ...]]:
    """What the resources get when these versions of one commit are undone, and what is set aside for it."""
    contents: dict[ResourceId, str] = {}
    aside: list[str] = []
    tree = repository.tip().tree
    for resource, number in made.items():
        version, last = _get(repository, resource, number), versions.latest(repository, resource)
        if resource.kind is not Kind.MEMORY or resource not in brought:
            contents[resource] = _without(repository, version)
            continue
        if _form(repository, tree, resource) != brought[resource]:
            continue  # it was retired, or taken back, since
        if last and last.number != number:
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
    tree = repository.tip().tree
    for resource, _ in repository.resources(tree) if brought else ():
        last = versions.latest(repository, resource)
        if resource.kind is not Kind.MEMORY or resource in brought or last is None:
            continue
        if _form(repository, tree, resource) in brought.values():
            yield last


def _form(repository: Repository, tree: pygit2.Oid | str, resource: ResourceId) -> int:
    path = document_of(resource)
    return form_in(repository.files(tree, path).get(path, b""))


def _plan(
    repository: Repository,
    contents: Mapping[ResourceId, str],
    subject: str,
    trailers: Mapping[str, str],
    set_aside: tuple[str, ...] = (),
) -> RevertPlan:
    main = repository.tip()
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
        raise NotFound(
            f"There is no version {resource}@{number}. Try: ", to_type(f"agentos registry log {resource}")
        )
    return version


def _before(repository: Repository, version: Version) -> str:
    return _get(repository, version.resource, version.parent).digest if version.parent else ""


def _without(repository: Repository, version: Version) -> str:
    """The resource's content without what the version changed; Conflict where something later changed the same files."""
    later: list[str] = []
    for other in versions.lineage(repository, version.resource):
        if other.number == version.number:
            break
        later.append(other.number)
    before = _before(repository, version)
    if not later:
        return before
    digests = (
        before,
        version.digest,
        reading.digest(repository, repository.tip().tree, version.resource),
    )
    old, made, now = ({**repository.files(one, "")} if one else {} for one in digests)
    changed = [path for path in old.keys() | made.keys() if old.get(path) != made.get(path)]
    if not old or any(now.get(path) != made.get(path) for path in changed):
        raise Conflict(
            f"{version.resource}@{version.number} cannot be undone alone: {', '.join(reversed(later))} came "
            f"after it. To go back to an earlier content as a whole: `agentos registry revert "
            f"{version.resource} --to {version.parent or version.number}`",
            kind=ErrorKind.LATER,
        )
    return str(repository.write_tree(digests[2], {path: old.get(path) for path in changed}))
