"""Running and evolving without sandboxes: every part is a function that the test gives."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TypeVar

from agentos.domain import CheckResult, Json, Limits, Outcome, Result, Snapshot, Step, Task, digest
from agentos.ports import Attempt, BenchResult, BoxUsage, Brief, Case, Plan, Proposal
from agentos.wire import Channel

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
        with ThreadPoolExecutor(max_workers=1) as pool:
            futures = [pool.submit(work, job) for job in jobs]
        return [future.result() for future in futures]


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
