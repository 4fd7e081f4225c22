"""A trial and how it ended: its result, what it cost, and who says why something did not work."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from agentos.records.identity import Snapshot, dataclass, digest


class Result(StrEnum):
    """How a run ended."""

    PASSED = "passed"
    FAILED = "failed"
    FLAKY = "flaky"
    INFRA = "infra"
    TIMEOUT = "timeout"
    BUDGET = "budget"
    CANCELLED = "cancelled"
    WAITING = "waiting"  # asked a person; another run of the task goes on with the answer
    UNKNOWN = "unknown"  # made elsewhere, and nobody said how it went: evidence of nothing
    NOT_REPLAYABLE = "not_replayable"  # a replay came to a call that was never recorded


# Results that say something of the agent. Infra and cancelled say nothing of it, budget only at times (``find.fingerprints``).
FAILING = frozenset({Result.FAILED, Result.TIMEOUT})


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found."""

    kind: str
    passed: bool
    detail: str = ""
    # name, distribution and version of what brings this kind of check, where it is installed
    plugin: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run used."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    tokens: int = 0
    usd: float | None = 0.0  # None: the price of a model is not known
    calls: int = 0  # of models
    live_calls: int = 0  # of these, not served from a recording


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run. ``score`` is the share of checks passed, 0 to 1."""

    result: Result
    score: float
    reason: str
    fault: Fault | None = None
    checks: tuple[CheckResult, ...] = ()
    cost: Cost = Cost()


def trial_id(owner: tuple[str, str, str], arm: str, repeat: int, tree: str, *, renamed: bool) -> str:
    """A trial's id follows from what it is. ``owner``: its evolution, its candidate ("" for the base) and its task."""
    parts = [*owner, arm, repeat, tree, *(["renamed"] if renamed else [])]
    return f"trial-{digest(parts)[:20]}"


class Mode(StrEnum):
    """Where the answers to a run's model calls, and its external effects, come from."""

    LIVE = "live"  # asked; counted, but the texts are not kept
    RECORD = "record"  # asked, and kept
    REPLAY = "replay"  # from the recording alone: the first call that it lacks ends the run
    REPLAY_THEN_LIVE = "replay-then-live"  # from the recording up to the first call that it lacks


# --- Why something did not work, and who says so: the kernel, the harness, or a tool -------------
# A box can name its faults as it likes, so what is decided on a fault is decided on its ``origin`` and, where
# the kernel itself saw it, on its ``kind``: a closed set that nothing in a box can speak. ``type`` is a word for
# people and fingerprints; ``message`` is prose.


class Origin(StrEnum):
    """Who says that something did not work."""

    UNSAID = ""  # on record from before it was written down: ``origin_of`` tells it from the rest
    KERNEL = "kernel"
    HARNESS = "harness"  # or the worker on its behalf: one process, so it is not told apart
    TOOL = "tool"


class KernelFault(StrEnum):
    """What the kernel itself saw go wrong."""

    NONE = ""
    NO_MODEL = "no_model"  # none is set up for the run
    BUDGET = "budget"  # of the run's own model calls
    EVOLUTION_BUDGET = "evolution_budget"  # shared by all trials of an evolution
    DAY_BUDGET = "day_budget"  # shared by all runs of a day
    LIMIT = "limit"  # steps, asks, bytes
    MEMORY = "memory"
    TIMEOUT = "timeout"
    EXIT = "exit"  # the worker's process ended before its job
    KILLED = "killed"
    PROTOCOL = "protocol"  # the box sent what is no frame
    NOT_RECORDED = "not_recorded"  # a replay came to what is not on record
    NOT_ALLOWED = "not_allowed"
    WAITING = "waiting"  # for a person
    UNKNOWN_TOOL = "unknown_tool"
    NOT_FOUND = "not_found"
    CHECK = "check"  # the answer is not what the checks expect
    FEEDBACK = "feedback"  # the answer is not what a person expects
    GRADER = "grader"  # a check could not be applied
    AWAY = "away"  # the machinery was, for whatever was tried: the attempt counts for nothing
    DAEMON = "daemon"  # it died during the run, which may or may not be the run's doing
    IMPORTED = "imported"  # made elsewhere, and cannot be run here
    RULE = "rule"  # a rule ended the run
    SUPERVISOR = "supervisor"  # the supervisor did
    OTHER = "other"  # of a run below that ended without a fault of its own


@dataclass(frozen=True, slots=True)
class Fault:
    """Why something did not work, structured, so that nothing need read free text."""

    type: str  # exception class, or one of: check, timeout, memory, output, limit, protocol, ...
    message: str
    where: str = ""  # "path:function" of the innermost frame inside the resource
    resource: str = ""  # ResourceId whose code it was, "" if none
    origin: Origin = Origin.UNSAID
    kind: KernelFault = KernelFault.NONE  # of the kernel's own only

    def __post_init__(self) -> None:
        if self.kind and self.origin is not Origin.KERNEL:
            raise ValueError(f"a fault of the {self.origin or 'unsaid'} origin has no kernel's kind")


class Arm(StrEnum):
    """Which side of a replay a trial ran on."""

    BASE = "base"
    CANDIDATE = "candidate"
    CONTROL = "control"  # the candidate without anything remembered (docs/use/memory.md)


class TrialSet(StrEnum):
    """Why a task is in a replay. They are disjoint."""

    EVIDENCE = "evidence"
    GUARD = "guard"
    HOLD_OUT = "hold-out"
    FRESH = "fresh"  # it came after the edit was found (verdict.doubts); in no comparison of the others


# Those that an edit is compared on, in the order in which they are tried.
COMPARED_SETS = (TrialSet.EVIDENCE, TrialSet.GUARD, TrialSet.HOLD_OUT)


@dataclass(frozen=True, slots=True)
class Trial:
    """One task's run within a replay. ``repeat`` counts from 0."""

    id: str
    evolution_id: str
    candidate_id: str  # "" for the base arm shared by all candidates
    task_id: str
    set: TrialSet
    arm: Arm
    repeat: int
    snapshot: Snapshot
    outcome: Outcome
    answer_sha256: str
    sandbox: str
    level: str
    run_id: str = ""  # under which its model calls are recorded
    recording: str = ""  # the run whose record it was served from
    drift: tuple[str, ...] = ()  # what came out differently from the recording, once for each cause
    steps_sha256: str = ""  # of its trajectory: the blob with it, but for ``steps_in``
    # Of a candidate's trial in a fresh pair: how many candidates of the failure were tried on this set, this one
    # included. 0: no such pair.
    number: int = 0
    # Of a candidate's on a hidden task that fails on the base as the evidence does: a hold-out task, or evidence
    # that was held back.
    alike: bool = False
    image: str = ""  # a digest of what its box was made of; "" if that was before it was written down
    # The goal and the input files had other names; the answer is digested in the old ones.
    renamed: bool = False
    bundle: str = ""  # a digest of what it got of its snapshot; "" likewise
    reached: tuple[str, ...] = ()  # labels of the functions that were entered (agentos.syntax)
    # Of any trial of a candidate: how many candidates of the failure were tried, this one included, on this set; of
    # a hidden task, on this very work. 0: made before looks were counted, and judged as then.
    look: int = 0
    # The trial of an evolution gone stale whose run this is: it would get the same on this base.
    taken_from: str = ""
    # What of other distributions judged it, ranked for it or made its box: "checks/iban (some-bank 1.2)", sorted.
    plugins: tuple[str, ...] = ()
    host: str = ""  # the worker that had its boxes; "" for the machine of the daemon
    # What its task asks for, whatever that is called (``work_of``); "" before it was written down.
    work: str = ""
    # the blob with the trajectories of several trials, by their digests; "": it has one of its own
    steps_in: str = ""

    @property
    def passed(self) -> bool:
        return self.outcome.result is Result.PASSED

    @property
    def is_lost(self) -> bool:
        """It could not be replayed: that says nothing of the code under test."""
        return self.outcome.result is Result.NOT_REPLAYABLE


class TrialLook(NamedTuple):
    """What one trial of a candidate was a look at, with the words of its ``Trial``."""

    candidate_id: str
    task_id: str
    set: TrialSet
    number: int
    look: int


@dataclass(frozen=True, slots=True)
class SafetyRate:
    """How many of the safety probes were violated on one side of a replay (docs/understand/guards.md).

    A probe that was run several times stands as often in ``ran``, and in ``violated`` as often as what
    must not happen happened. What another evolution had measured is stored again under this one, with
    the time at which it was measured.
    """

    id: str
    evolution_id: str
    candidate_id: str  # "" for the base, shared by all candidates
    arm: Arm
    snapshot: Snapshot
    agent: str  # as which the probes were run
    learnt: bool  # with memories and skills that did not ship, or without
    ran: tuple[str, ...]
    violated: tuple[str, ...]
    left_out: tuple[str, ...]  # probes that need a model where none is set up
    probes_sha256: str
    place: str  # the sandbox that the policy prefers for them
    at: datetime
    image: str = ""  # what boxes were made of then, as ``Trial.image``; "" if it was not written down yet

    @property
    def tree(self) -> str:
        """Of the snapshot: what was measured on it holds wherever it stands."""
        return self.snapshot.tree

    @property
    def value(self) -> float:
        """From 0 to 1."""
        return len(self.violated) / len(self.ran) if self.ran else 0.0
