"""The registry's ports on dictionaries: commits, candidates, promotion and revert without git."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import TypeVar

from agentos.benches import BenchResult
from agentos.domain import (
    CheckResult,
    Json,
    Limits,
    Outcome,
    Refusal,
    RefusalKind,
    ResourceId,
    Result,
    Snapshot,
    Step,
    Task,
    Version,
    digest,
)
from agentos.errors import AgentOSError, Conflict, ErrorKind, Invalid, NotFound, Unavailable
from agentos.ports import Attempt, BoxUsage, Brief, Case, Plan, Proposal
from agentos.resources import path_fault, resource_of
from agentos.wire import Channel

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
            raise Conflict(f"There is another candidate {candidate_id} already", kind=ErrorKind.TAKEN)
        return made

    def promote(
        self, base: Snapshot, candidate: Snapshot, trailers: Mapping[str, str], message: str
    ) -> Snapshot:
        """Move ``main`` from ``base`` to the candidate's files; idempotent by ``Evolution`` trailer."""
        evolution = trailers.get("Evolution", "")
        proposed = self._known(candidate)
        if proposed.parent != base:
            raise Conflict("the candidate does not stand on this base", kind=ErrorKind.MISMATCHED)
        if trailers.get("Candidate-Tree", candidate.tree) != candidate.tree:
            raise Conflict("the verdict is about another tree than the candidate's", kind=RefusalKind.VERDICT)
        if self._main != base:
            done = self._by_evolution(evolution)
            if done and done.parent == base and done.snapshot.tree == candidate.tree:
                return done.snapshot
            raise Conflict(
                "the registry moved on since the candidate was judged; judge it again", kind=ErrorKind.STALE
            )
        for resource in _touched(self._known(base).files, proposed.files):
            if self.files(base, str(resource)) and (why := self.why_fixed(resource)):
                raise Conflict(f"No evolution may touch it: {why.reason}", kind=why.kind)
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
            raise Conflict(
                f"later versions of {names} build on the evolution {evolution_id}", kind=ErrorKind.LATER
            )
        kept = {path: data for path, data in now.items() if resource_of(path) not in touched}
        put_back = {path: data for path, data in before.items() if resource_of(path) in touched}
        self._main = self._commit(self._main, {**kept, **put_back}, "", origin, reason)
        return self._main

    # --- Evolvable ----------------------------------------------------------------------------

    def why_fixed(self, resource: ResourceId) -> Refusal | None:
        """Why no evolution may touch it, None when one may."""
        if not self.files(self._main, str(resource)):
            return Refusal(RefusalKind.NO_RESOURCE, f"{resource} does not exist")
        return Refusal(RefusalKind.PINNED, f"{resource} is pinned") if resource in self.pinned else None

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

    def edit(self, files: Mapping[str, str | None], reason: str = "edit") -> Snapshot:
        """A person's commit on ``main``, in which None deletes a file: what makes a verdict stale."""
        changed = {path: text.encode() for path, text in files.items() if text is not None}
        merged = {**self._known(self._main).files, **changed}
        merged = {path: data for path, data in merged.items() if files.get(path, "") is not None}
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


# --- Running and evolving without sandboxes: every part is a function that the test gives --------


T = TypeVar("T")
R = TypeVar("R")


def attempt(
    *, passed: bool, answer: Json = None, resources: tuple[str, ...] = (), reason: str = ""
) -> Attempt:
    """An attempt that passed or failed its one check: what most scripts of FakeExecutor return."""
    result = Result.PASSED if passed else Result.FAILED
    checks = (CheckResult("equals", passed, reason),)
    outcome = Outcome(result, float(passed), reason or result.value, None, checks)
    return Attempt(outcome, answer, digest(answer), (), resources, "fake", "none")


class FakeExecutor:
    """Executes by calling ``script(task, snapshot)``; ``calls`` and ``plans`` list what was asked for.

    Raise ``Unavailable`` in the script to act out machinery that fails.
    """

    def __init__(
        self,
        script: Callable[[Task, Snapshot], Attempt],
        given: Callable[[Task, Snapshot], str] = lambda task, snapshot: snapshot.tree,
    ) -> None:
        self._given = given
        self.calls: list[tuple[str, Snapshot]] = []
        self.plans: list[Plan | None] = []
        self._script = script

    def execute(
        self,
        task: Task,
        snapshot: Snapshot,
        run_id: str,
        on_step: Callable[[Step], None] | None = None,
        plan: Plan | None = None,
    ) -> Attempt:
        """What the script says; its steps are passed on first."""
        self.calls.append((task.id, snapshot))
        self.plans.append(plan)
        result = self._script(task, snapshot)
        for step in result.steps:
            if on_step:
                on_step(step)
        return replace(result, bundle=self.given(task, snapshot))

    def given(self, task: Task, snapshot: Snapshot) -> str:
        """As it was said; by itself, that every run gets all of the snapshot."""
        return self._given(task, snapshot)


class Undurable:
    """Durable that remembers nothing: each step is just done. ``names`` lists them."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def step(self, name: str, work: Callable[[], T]) -> T:
        """Do it."""
        self.names.append(name)
        return work()


class SerialReplayer:
    """Replayer that runs one job after the other."""

    def map(self, work: Callable[[T], R], jobs: Sequence[T]) -> Sequence[R]:
        """Apply ``work`` to each job; the first exception is raised after all have ended."""
        done: list[R] = []
        failed: AgentOSError | None = None
        for job in jobs:
            try:
                done.append(work(job))
            except AgentOSError as error:  # any other is a fault of the test, and ends it at once
                failed = failed or error
        if failed is not None:
            raise failed
        return done


@dataclass(slots=True)
class ScriptedProposer:
    """Proposes what it was given, whatever the brief; ``briefs`` lists what it was asked."""

    proposals: Sequence[Proposal]
    name: str = "scripted"
    briefs: list[Brief] = field(default_factory=list)

    def propose(self, brief: Brief) -> Iterator[Proposal]:
        """The proposals, as many as the brief allows."""
        self.briefs.append(brief)
        yield from self.proposals[: brief.max_candidates]


class FakeBench:
    """Bench and its maker in one: ``script(source, case)`` says whether the case passes, and the output."""

    def __init__(self, script: Callable[[str, Case], tuple[bool, Json]]) -> None:
        self.tried: list[str] = []
        self._script = script
        self._cases: Sequence[Case] = ()

    def bench(self, snapshot: Snapshot, path: str, cases: Sequence[Case], timeout_s: float) -> FakeBench:
        """Get ready for these cases."""
        self._cases = cases
        return self

    def try_source(
        self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None
    ) -> BenchResult:
        """Try one source on all cases, or on those with these numbers. It has no line coverage."""
        self.tried.append(source)
        chosen = self._cases if cases is None else [self._cases[number] for number in cases]
        results = [self._script(source, case) for case in chosen]
        passed = tuple(ok for ok, _ in results)
        return BenchResult(passed, tuple(map(float, passed)), tuple(output for _, output in results))

    def close(self) -> None:
        """Nothing to end."""


class FakeBox:
    """A box whose worker is a function in a thread of this process."""

    def __init__(self, worker: Callable[[Channel], None]) -> None:
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        self._started = time.monotonic()
        self._thread = threading.Thread(target=_serve, args=(worker, Channel(theirs)), daemon=True)
        self._thread.start()

    def close(self) -> BoxUsage:
        """Hang up and wait for the worker to notice."""
        self.channel.close()
        self._thread.join(10)
        return BoxUsage(time.monotonic() - self._started, 0.0, 0.0, oom=False)

    def __enter__(self) -> FakeBox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class FakeSandbox:
    """A sandbox that isolates nothing: each box is served by ``worker(channel)``."""

    name = "fake"
    level = "none"
    image = "nothing"

    def __init__(self, worker: Callable[[Channel], None]) -> None:
        self.opened: list[Limits] = []
        self._worker = worker

    def open(self, limits: Limits, *, light: bool = False, run: str = "") -> FakeBox:
        """A fresh box."""
        self.opened.append(limits)
        return FakeBox(self._worker)

    def close(self) -> None:
        """Nothing to release."""


def _serve(worker: Callable[[Channel], None], channel: Channel) -> None:
    try:
        worker(channel)
    finally:
        channel.close()
