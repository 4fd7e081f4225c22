"""Candidates as references, and the only door through which an evolution reaches ``main``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pygit2

from agentos.domain import ResourceId, Snapshot, Version
from agentos.errors import Conflict, Invalid
from agentos.registry import wheels
from agentos.registry.git import reading, versions
from agentos.registry.git.repository import Repository
from agentos.registry.writing import CommitInfo, advance, tip, tree_faults
from agentos.resources import examine, path_fault, read
from agentos.resources.servers import is_server, without_server_locks

CANDIDATES = "refs/candidates/"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}")


@dataclass(frozen=True, slots=True)
class Promotion:
    """A commit on ``main`` that says that an evolution brought it about. What it says may be forged."""

    snapshot: Snapshot
    evolution: str
    said: Mapping[str, str]  # its trailers, the first of each name


def promotions(repository: Repository) -> list[Promotion]:
    """Every such commit, newest first."""
    found: list[Promotion] = []
    for commit in versions.line(repository):
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
    if not _ID.fullmatch(candidate_id):
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
            raise Conflict(f"There is another candidate {candidate_id} already")
        if present is None:
            repository.move(ref, made, expected=None)
    return Snapshot(str(made), str(tree))


def promote(repository: Repository, base: Snapshot, candidate: Snapshot, about: CommitInfo) -> Snapshot:
    """See ports.CandidateStore."""
    commit = repository.commit(candidate.commit)
    if str(commit.tree_id) != candidate.tree:
        raise Conflict(
            f"Candidate {candidate.commit[:12]} is not the tree {candidate.tree[:12]} that was judged"
        )
    if [str(parent) for parent in commit.parent_ids] != [base.commit]:
        raise Conflict(f"Candidate {candidate.commit[:12]} does not stand on {base.commit[:12]}")
    if about.trailers.get("Candidate-Tree", candidate.tree) != candidate.tree:
        raise Conflict("The verdict is about another tree than the candidate's")
    with repository.lock():
        main = tip(repository)
        if main.commit != base.commit:
            return _promoted_before(repository, base, candidate, about)
        changed, others = reading.touched(repository, main.tree, candidate.tree)
        if others:
            raise Conflict(f"A candidate may touch resources only, this one touches {', '.join(others)}")
        for resource in changed:
            _may_touch(repository, main, candidate, resource)
        trailers = {**about.trailers, "Candidate-Tree": candidate.tree}
        said = CommitInfo(about.message, about.origin, about.now, trailers)
        return advance(repository, main, commit.tree_id, changed, said)


def why_fixed(repository: Repository, main: Snapshot, resource: ResourceId) -> str:
    """See ports.Evolvable.may_evolve."""
    files = reading.files(repository, main.tree, str(resource))
    if not files:
        return f"{resource} does not exist"
    pinned = reading.pins(repository, main).get(str(resource))
    if pinned is not None:
        return f"{resource} is pinned" + (f": {pinned}" if pinned else "")
    return "" if read(resource, files).evolvable else f"{resource} says evolvable = false"


def contents(repository: Repository, resource: ResourceId) -> Iterator[tuple[Version, Mapping[str, bytes]]]:
    """Each version of the resource with its files, newest first; without those that retire it."""
    for version in versions.lineage(repository, resource):
        if version.digest:
            tree = repository.snapshot(version.commit).tree
            yield version, reading.files(repository, tree, str(resource))


def _faults_of(repository: Repository, base: str, tree: pygit2.Oid) -> list[str]:
    """One sentence for each reason for which no evolution may bring ``tree`` about on top of ``base``."""
    changed, _ = reading.touched(repository, base, str(tree))
    changes = [_change_fault(repository, base, str(tree), resource) for resource in sorted(changed)]
    return [*filter(None, changes), *tree_faults(repository, tree, changed)]


def _may_touch(repository: Repository, main: Snapshot, candidate: Snapshot, resource: ResourceId) -> None:
    there = reading.files(repository, main.tree, str(resource))
    if there and (reason := why_fixed(repository, main, resource)):
        raise Conflict(f"No evolution may touch it: {reason}")
    if str(resource) in reading.pins(repository, main):
        raise Conflict(f"No evolution may touch it: {resource} is pinned")
    if fault := _change_fault(repository, main.tree, candidate.tree, resource):
        raise Conflict(fault)


def _change_fault(repository: Repository, base: str, tree: str, resource: ResourceId) -> str:
    """What an evolution may do to no resource, "" when it does not. Of one that cannot be read: ``tree_faults``."""
    before = reading.files(repository, base, str(resource))
    after = reading.files(repository, tree, str(resource))
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
        f"The registry moved on from {base.commit[:12]} since the candidate was judged; judge it again"
    )
