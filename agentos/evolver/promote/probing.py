"""Probe: what a snapshot has to show before runs are given it.

Harnesses, agents and environments are what every run is driven by: a fault there is no single
task's failure. So before a snapshot in which they changed is served, fresh boxes of it have to answer
several times in a row: load, name what they run, keep the contract, do again what was done before, and
need no more time and memory for it than those of the snapshot that serves now.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from agentos.domain import (
    WRONG_ANSWER,
    Candidate,
    Evolution,
    EvolutionState,
    Kind,
    Mode,
    Outcome,
    Pass,
    Probe,
    Refusal,
    RefusalKind,
    ResourceId,
    Result,
    Run,
    Share,
    Snapshot,
    Task,
    kind_of,
    new_id,
)
from agentos.errors import NotFound, Unavailable
from agentos.evolver.guards.assurance.contract import RetryingExecutor, ask
from agentos.evolver.guards.assurance.dynamic import breaches
from agentos.evolver.history.recordings import recording_for_run
from agentos.evolver.promote import CanaryContext, ProbeContext, PromotionContext
from agentos.evolver.promote.consent import is_overtaken
from agentos.evolver.promote.promotion import (
    DRIVING,
    ProbeShown,
    changed,
    concerns,
    consented,
    files_of,
    is_done,
    keep_probe,
)
from agentos.evolver.promote.rebasing import rebased
from agentos.ports import Plan, Snapshots
from agentos.resources import examine
from agentos.resources.documents import disagreements, documents_of


def form_faults(snapshots: Snapshots, snapshot: Snapshot) -> list[str]:
    """A sentence for each harness of the snapshot that would meet memories of another form than it reads."""
    documents = documents_of(snapshots.names(snapshot), lambda path: snapshots.files(snapshot, path))
    return disagreements(documents)


def probe_promotion(parts: PromotionContext, evolution: Evolution) -> Evolution:
    """Under a consent that stands: probe the candidate where it changes what runs are driven by.

    One that does not pass ends ROLLED_BACK, and nothing was moved. ``promote`` follows.
    """
    candidate, _, _ = consented(parts, evolution)
    evolution = parts.move(evolution, EvolutionState.PROMOTING)
    if is_overtaken(parts, candidate):  # by itself, before a kill, or by others
        if is_done(parts, candidate) or (moved := rebased(parts, candidate)) is None:
            return evolution  # ``promote`` finds out which
        candidate = moved
    if (failed := probe_fault(parts, candidate)) is not None:
        return parts.move(evolution, EvolutionState.ROLLED_BACK, failed.reason, end=True)
    return evolution


def probe_fault(parts: PromotionContext, candidate: Candidate) -> Refusal | None:
    """Why the candidate may not drive runs; None when it may, or when it changes nothing of that."""
    base, snapshot = candidate.stands_on
    if not concerns(parts.snapshots, snapshot, base):
        return None
    shown = probe(parts, snapshot, base, candidate.evolution_id)
    if shown.passed:
        return None
    return Refusal(RefusalKind.PROBE, f"its probe failed, and nothing was moved: {shown.reason}")


def probe(parts: ProbeContext, snapshot: Snapshot, base: Snapshot, evolution_id: str = "") -> Probe:
    """Probe the snapshot beside the base that serves now; the stored record.

    Safe to repeat. Raises Unavailable when the machinery failed: then nothing is known.
    """
    began = time.monotonic()
    probing = _Probing(parts, snapshot, base, began + parts.policy.probe.time_s)
    fault = probing.fault()
    shown = ProbeShown(
        evolution_id,
        tuple(probing.passes),
        tuple(canary.task.id for canary in probing.canaries),
        round(time.monotonic() - began, 3),
    )
    return keep_probe(parts, snapshot, fault or "", shown, passed=fault is None)


@dataclass(slots=True)
class _Probing:
    """One probe under way. Its methods give what is wrong as a sentence, None when nothing is."""

    parts: ProbeContext
    snapshot: Snapshot
    base: Snapshot
    deadline: float  # on the monotonic clock
    passes: list[Pass] = field(default_factory=list)
    canaries: list[Canary] = field(default_factory=list)

    def fault(self) -> str | None:
        """The first thing that is wrong."""
        new = changed(self.parts.snapshots, self.snapshot, self.base)
        if (fault := self._not_loading(new)) is not None:
            return fault
        driving = [name for name in new if name.kind in DRIVING]
        agents = list(self._driven(driving))
        self.canaries = choose(self.parts, [*driving, *agents])
        looks: list[Callable[[], str | None]] = [
            *(partial(self._unnamed, agent) for agent in agents[: self.parts.policy.probe.agents]),
            *(partial(self._in_breach, name) for name in driving if name.kind is Kind.HARNESS),
            *(partial(lost, self.parts, item, self.snapshot, self.base) for item in self.canaries),
        ]
        count = self.parts.policy.probe.passes
        for number in range(1, count + 1):
            for look in looks:
                if (fault := look() or self._late()) is not None:
                    return f"pass {number} of {count}: {fault}"
        return self._dearer()

    def _late(self) -> str | None:
        if time.monotonic() < self.deadline:
            return None
        return f"it did not come to its end within {self.parts.policy.probe.time_s:g} s in all"

    def _not_loading(self, new: Sequence[ResourceId]) -> str | None:
        """The first resource that does not load, or harness that would meet memories which it cannot read.

        What is the same in the base has loaded there.
        """
        for name in new:
            files = self._own(name)
            reading = examine(name, files)
            faults = list(reading.faults)
            if reading.resource is not None and reading.resource.tools:
                faults += self.parts.load(files, reading.resource.tools)
            if faults:
                return f"{name} does not load: {'; '.join(faults)[:500]}"
        return "; ".join(form_faults(self.parts.snapshots, self.snapshot))[:500] or None

    def _driven(self, driving: Sequence[ResourceId]) -> Iterator[ResourceId]:
        """The agents that changed, or that stand on something that did."""
        for name in self.parts.snapshots.names(self.snapshot):
            if name.kind is Kind.AGENT and {name, *self._below(name)} & {*driving}:
                yield name

    def _below(self, agent: ResourceId) -> tuple[ResourceId, ...]:
        """The harness and the environment that the agent stands on; none of one that cannot be read."""
        resource = examine(agent, self._own(agent)).resource
        if resource is None:
            return ()
        kinds = (Kind.HARNESS, Kind.ENVIRONMENT)
        return tuple(ResourceId(kind, str(resource.settings[kind])) for kind in kinds)

    def _is_program(self, harness: ResourceId) -> bool:
        """A black box calls no tool on demand: only canaries can be asked of it."""
        resource = examine(harness, self._own(harness)).resource
        return resource is not None and bool(resource.settings["command"])

    def _unnamed(self, agent: ResourceId) -> str | None:
        """Why a box of the agent does not name what it was given."""
        below = self._below(agent)
        if any(name.kind is Kind.HARNESS and self._is_program(name) for name in below):
            return None
        sides = [self.base, self.snapshot]  # first the one that serves now: it warms the sandbox up
        turn = sum(one.agent == agent.name for one in self.passes) % 2
        if turn:  # by turns, as who comes second may have to wait for a box to be made
            sides.reverse()
        asked = [ask(self.parts, side, agent, below) for side in sides]
        before, told = asked[turn], asked[1 - turn]
        if told.late:
            self._blame_no_machine(agent, below)
            told = ask(self.parts, self.snapshot, agent, below)
        if told.fault:
            return f"{agent}: {told.fault}"
        beside = (0.0, 0.0) if before.fault else (before.start_s, before.memory_mb)
        self.passes.append(Pass(told.boot, agent.name, told.start_s, told.memory_mb, *beside))
        return None

    def _blame_no_machine(self, agent: ResourceId, below: Sequence[ResourceId]) -> None:
        """Raises Unavailable where the machine is so busy that what serves now is late, or nearly so, as well."""
        now = ask(self.parts, self.base, agent, below)
        if now.late or now.took_s > self.parts.policy.probe.run_s / 3:
            raise Unavailable(
                f"the machine is too busy to probe {agent}: it was late, and what serves now takes {now.took_s:.1f} s"
            )

    def _in_breach(self, harness: ResourceId) -> str | None:
        """The clause of the contract that the harness breaks."""
        broken = breaches(self.parts, harness, self.snapshot, self.base)
        return f"{harness} breaks the contract: {broken[0]}" if broken else None

    def _dearer(self) -> str | None:
        """Beside the base: the best start, because other work only adds to it, and the usual peak."""
        rules = self.parts.policy.probe
        for agent in dict.fromkeys(item.agent for item in self.passes):
            own = [item for item in self.passes if item.agent == agent and item.base_start_s]
            if not own:
                continue
            peak = statistics.median(item.memory_mb for item in own)
            before = statistics.median(item.base_memory_mb for item in own)
            if before and peak > before * rules.memory_ratio + rules.memory_slack_mb:
                return f"agent/{agent} takes {peak:.0f} MB for a small task, and took {before:.0f} MB before"
            start_s, before_s = min(item.start_s for item in own), min(item.base_start_s for item in own)
            if start_s > before_s * rules.start_ratio + rules.start_slack_s:
                return f"agent/{agent} takes {start_s:.2f} s to start, and took {before_s:.2f} s before"
        return None

    def _own(self, name: ResourceId) -> Mapping[str, bytes]:
        return files_of(self.parts.snapshots, self.snapshot, name)


# --- Canaries: work that was done before, tried again before anything else is risked -------------
# Of each kind of work the newest quick run that passed is taken. Nothing is asked of anybody anew: what
# the run took from outside comes from its record, and where the record does not reach, it says nothing.


@dataclass(frozen=True, slots=True)
class Canary:
    """A task, and where what it asks for comes from."""

    task: Task
    plan: Plan
    hidden: bool = False  # of the hold-out


def choose(parts: CanaryContext, resources: Sequence[ResourceId]) -> list[Canary]:
    """Of work that used one of these, as many kinds as the policy says."""
    found: dict[tuple[str, str], Canary] = {}
    for resource in dict.fromkeys(resources):
        for run in parts.journal.runs_using(str(resource), parts.policy.look_back.canaries):
            if len(found) >= parts.policy.probe.canaries:
                break
            task = _task(parts, run)
            kind = (task.agent, task.call.tool if task.call else "") if task else ("", "")
            if task is not None and kind not in found:
                found[kind] = _canary(parts, task, run)
    return list(found.values())


def _task(parts: CanaryContext, run: Run) -> Task | None:
    """The work of a run that can be a canary: it passed here, soon, and nobody's run handed it over."""
    outcome = run.outcome
    if outcome is None or outcome.result is not Result.PASSED or not run.is_live:
        return None
    if outcome.cost.wall_s > parts.policy.probe.run_s / 2:
        return None
    try:
        task = parts.journal.task(run.task_id)
    except NotFound:
        return None
    return None if task.parent else task


def _canary(parts: CanaryContext, task: Task, run: Run) -> Canary:
    recording = recording_for_run(parts.journal, parts.blobs, run)
    plan = Plan(mode=Mode.REPLAY, recording=recording, wall_s=parts.policy.probe.run_s)
    return Canary(task, plan, hidden=run.share is Share.HOLD_OUT)


def lost(parts: CanaryContext, canary: Canary, snapshot: Snapshot, base: Snapshot) -> str | None:
    """Why it fails on the snapshot, each of two times, and passes on the base, each of two times; else None.

    Later proposers read it: of hidden work it says nothing, and of no work what its checks expect.
    """
    first = _again(parts, canary, snapshot)
    if not _failed(first) or not _failed(_again(parts, canary, snapshot)):
        return None
    if any(_again(parts, canary, base).result is not Result.PASSED for _ in range(2)):
        return None
    which = "a hold-out task" if canary.hidden else f"{canary.task.id} ({canary.task.name})"
    return f"{which} passes without the change and fails with it" + (
        "" if canary.hidden else f": {_why(first)}"
    )


def _again(parts: CanaryContext, canary: Canary, snapshot: Snapshot) -> Outcome:
    executor = RetryingExecutor(parts.executor, parts.policy.replay.infra_retries)
    return executor.execute(canary.task, snapshot, new_id("probe"), plan=canary.plan).outcome


def _failed(outcome: Outcome) -> bool:
    """Where its record does not reach so far, it says nothing."""
    return outcome.result not in (Result.PASSED, Result.NOT_REPLAYABLE)


def _why(outcome: Outcome) -> str:
    # The fault of a wrong answer quotes the checks.
    if outcome.fault is not None and kind_of(outcome.fault) not in WRONG_ANSWER:
        return f"{outcome.fault.type}: {outcome.fault.message}"[:300]
    failed = ", ".join(sorted({check.kind for check in outcome.checks if not check.passed}))
    return f"its answer fails {failed}" if failed else outcome.result.value
