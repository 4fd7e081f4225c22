"""The registry's ports on dictionaries: commits, candidates, promotion and revert without git."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agentos.domain import ResourceId, Snapshot, Version, digest
from agentos.errors import Conflict, Invalid, NotFound, Unavailable
from agentos.resources import path_fault, resource_of

Files = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class _Commit:
    snapshot: Snapshot
    parent: Snapshot | None
    files: Files
    evolution: str
    origin: str
    message: str


class FakeRegistry:
    """Snapshots, CandidateStore and Evolvable over ``files`` (registry path -> text).

    ``pinned`` holds the resources that no evolution may touch.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self.pinned: set[ResourceId] = set()
        self._commits: dict[str, _Commit] = {}
        self._candidates: dict[str, Snapshot] = {}
        self._main = self._commit(None, {path: text.encode() for path, text in files.items()}, "", "seed", "")

    # --- Snapshots ----------------------------------------------------------------------------

    def stable(self) -> Snapshot:
        """The tip of ``main``."""
        return self._main

    def files(self, snapshot: Snapshot, prefix: str) -> Files:
        """Path -> content of every file at or below ``prefix``; Unavailable for an unknown commit."""
        files = self._known(snapshot).files
        below = prefix.rstrip("/") + "/"
        return {
            path: data
            for path, data in files.items()
            if not prefix or path == prefix or path.startswith(below)
        }

    def names(self, snapshot: Snapshot) -> Sequence[ResourceId]:
        """Every resource in the snapshot, sorted."""
        return sorted({found for path in self._known(snapshot).files if (found := resource_of(path))})

    def digests(self, snapshot: Snapshot) -> Mapping[ResourceId, str]:
        """Every resource with its digest, sorted."""
        files = self._known(snapshot).files
        return {resource: _digest(files, resource) for resource in self.names(snapshot)}

    # --- CandidateStore -----------------------------------------------------------------------

    def add_candidate(self, candidate_id: str, base: Snapshot, files: Mapping[str, str]) -> Snapshot:
        """Commit ``files`` on top of ``base``; the same candidate again gives the same snapshot."""
        faults = [fault for path in files if (fault := path_fault(path))]
        if faults:
            raise Invalid(f"Candidate {candidate_id!r}", faults)
        changed = {path: text.encode() for path, text in files.items()}
        made = self._commit(base, {**self._known(base).files, **changed}, "", "candidate", candidate_id)
        if self._candidates.setdefault(candidate_id, made) != made:
            raise Conflict(f"There is another candidate {candidate_id} already")
        return made

    def promote(
        self, base: Snapshot, candidate: Snapshot, trailers: Mapping[str, str], message: str
    ) -> Snapshot:
        """Move ``main`` from ``base`` to the candidate's files; idempotent by ``Evolution`` trailer."""
        evolution = trailers.get("Evolution", "")
        proposed = self._known(candidate)
        if proposed.parent != base:
            raise Conflict("the candidate does not stand on this base")
        if trailers.get("Candidate-Tree", candidate.tree) != candidate.tree:
            raise Conflict("the verdict is about another tree than the candidate's")
        if self._main != base:
            done = self._by_evolution(evolution)
            if done and done.parent == base and done.snapshot.tree == candidate.tree:
                return done.snapshot
            raise Conflict("the registry moved on since the candidate was judged; judge it again")
        for resource in _touched(self._known(base).files, proposed.files):
            if self.files(base, str(resource)) and (why := self.may_evolve(resource)):
                raise Conflict(f"No evolution may touch it: {why}")
        self._main = self._commit(base, proposed.files, evolution, "evolution", message)
        return self._main

    def revert_evolution(self, evolution_id: str, reason: str, origin: str) -> Snapshot:
        """Put back what stood before the evolution; doing it again changes nothing."""
        promoted = self._by_evolution(evolution_id)
        if promoted is None or promoted.parent is None:
            raise NotFound(f"no version came from the evolution {evolution_id}")
        before, now = self._known(promoted.parent).files, self._known(self._main).files
        touched = _touched(before, promoted.files)
        if not touched & _touched(before, now):
            return self._main
        later = touched & _touched(promoted.files, now)
        if later:
            names = ", ".join(map(str, sorted(later)))
            raise Conflict(f"later versions of {names} build on the evolution {evolution_id}")
        kept = {path: data for path, data in now.items() if resource_of(path) not in touched}
        put_back = {path: data for path, data in before.items() if resource_of(path) in touched}
        self._main = self._commit(self._main, {**kept, **put_back}, "", origin, reason)
        return self._main

    # --- Evolvable ----------------------------------------------------------------------------

    def may_evolve(self, resource: ResourceId) -> str:
        """ "" when an evolution may touch it, else the reason why not."""
        if not self.files(self._main, str(resource)):
            return f"{resource} does not exist"
        return f"{resource} is pinned" if resource in self.pinned else ""

    def versions(self, resource: ResourceId) -> Sequence[Version]:
        """Newest first; numbers are ``1.<n>.0``."""
        lineage = self._lineage()
        changes = [
            commit
            for commit in lineage
            if resource in _touched(self._known(commit.parent).files if commit.parent else {}, commit.files)
        ]
        found: list[Version] = []
        for number, commit in enumerate(changes):
            parent = found[-1].number if found else None
            tree = _digest(commit.files, resource)
            found.append(
                Version(
                    resource=resource,
                    number=f"1.{number}.0",
                    commit=commit.snapshot.commit,
                    digest=tree,
                    parent=parent,
                    reason=commit.message,
                    created_at=datetime.fromtimestamp(number, UTC),
                    origin=commit.origin,
                    evolution=commit.evolution or None,
                )
            )
        return found[::-1]

    # --- inside -------------------------------------------------------------------------------

    def edit(self, files: Mapping[str, str], reason: str = "edit") -> Snapshot:
        """A person's commit on ``main``: what makes a verdict stale."""
        changed = {path: text.encode() for path, text in files.items()}
        merged = {**self._known(self._main).files, **changed}
        self._main = self._commit(self._main, merged, "", "edit", reason)
        return self._main

    def _commit(
        self, parent: Snapshot | None, files: Files, evolution: str, origin: str, message: str
    ) -> Snapshot:
        tree = digest(sorted((path, digest(data)) for path, data in files.items()))[:40]
        commit = digest([parent, tree, evolution, origin, message])[:40]
        snapshot = Snapshot(commit, tree)
        self._commits[commit] = _Commit(snapshot, parent, dict(files), evolution, origin, message)
        return snapshot

    def _known(self, snapshot: Snapshot) -> _Commit:
        if snapshot.commit not in self._commits:
            raise Unavailable(f"there is no commit {snapshot.commit}")
        return self._commits[snapshot.commit]

    def _lineage(self) -> list[_Commit]:
        found = [self._known(self._main)]
        while (parent := found[-1].parent) is not None:
            found.append(self._known(parent))
        return found[::-1]

    def _by_evolution(self, evolution_id: str) -> _Commit | None:
        """The commit that the evolution promoted."""
        found = (commit for commit in self._lineage() if evolution_id and commit.evolution == evolution_id)
        return next(found, None)


def _digest(files: Files, resource: ResourceId) -> str:
    return digest(
        sorted((path, digest(data)) for path, data in files.items() if resource_of(path) == resource)
    )


def _touched(old: Files, new: Files) -> set[ResourceId]:
    paths = {path for path in {*old, *new} if old.get(path) != new.get(path)}
    return {found for path in paths if (found := resource_of(path))}
