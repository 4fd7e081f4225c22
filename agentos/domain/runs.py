"""What happened: runs, their steps and their outcomes, and the trials of a replay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from agentos.domain.identity import InputFile, Json, Snapshot, dataclass, digest

IMPORT = "import"  # as a run's sandbox: it was made elsewhere, and says nothing of what is here


class Share(StrEnum):
    """Which of the disjoint sets a task belongs to, for good: assigned when first seen."""

    OPEN = "open"  # may serve as evidence or guard
    HOLD_OUT = "hold-out"  # hidden from proposers


def share_of(task_key: str, hold_out: float) -> Share:
    """The set that work with this key belongs to: a stable hash, ``hold_out`` of it hidden."""
    fraction = int(digest(["share", task_key])[:12], 16) / 16**12
    return Share.HOLD_OUT if fraction < hold_out else Share.OPEN


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


@dataclass(frozen=True, slots=True)
class Step:
    """One action and its observation. Append-only; ``index`` counts from 0 within the run."""

    run_id: str
    index: int
    node: str  # the harness' node: route, call, think, act, observe, verify, finish, or a hook
    action: Json
    observation: Json  # {"blob": sha256, "head": …, "tail": …, "size": n} when it was large
    fault: Fault | None
    started_at: datetime
    duration_ms: float


@dataclass(frozen=True, slots=True)
class RunEnd:
    """What a run ended with beside its outcome. ``resources`` in any order; ``host`` as in ``Run``."""

    answer: Json = None
    outputs: tuple[InputFile, ...] = ()
    resources: tuple[str, ...] = ()
    host: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt at a task on one snapshot."""

    id: str
    task_id: str
    task_key: str
    share: Share
    attempt: int  # 1, 2 … : a later one exists only where the machinery died under an earlier
    snapshot: Snapshot
    sandbox: str  # adapter that ran it
    level: str  # isolation level reached
    started_at: datetime
    finished_at: datetime | None = None
    outcome: Outcome | None = None
    answer: Json = None  # inline, or {"blob": sha256, ...}
    outputs: tuple[InputFile, ...] = ()  # files the run left in its workspace
    resources: tuple[str, ...] = ()  # ResourceIds whose code or text the run used
    parent: str = ""  # the run that handed this one its task
    resumes: str = ""  # the run of the same task whose record this one went on from
    host: str = ""  # the worker that had its boxes; "" for the machine of the daemon
    regrades: str = ""  # the run of which this is the record, held against a person's checks

    @property
    def passed(self) -> bool:
        return self.outcome is not None and self.outcome.result is Result.PASSED

    @property
    def is_live(self) -> bool:
        """Whether it says how work goes here: neither made elsewhere nor the record of another run."""
        return self.sandbox != IMPORT and not self.regrades


@dataclass(frozen=True, slots=True)
class SupervisorWorth:
    """What one check of the supervisor would have done in recorded runs, had it stopped each that it fired on."""

    check: str
    runs: int  # that it was measured on: newer than those it was fitted on, and not acted on themselves
    passed: int  # of these
    fired: int
    lost: int  # passed runs among those that it fired on
    saved: float  # share of the cost of all of them, 0 to 1: what came after it fired
    acts: bool  # whether it may stop a run or ask a person
    why: str = ""  # it may not

    @property
    def lost_share(self) -> float:
        """Of the passed runs, those that would have been lost."""
        return self.lost / self.passed if self.passed else 0.0


# --- What a run may ask of models, and what it got -----------------------------------------------


class Mode(StrEnum):
    """Where the answers to a run's model calls, and its external effects, come from."""

    LIVE = "live"  # asked; counted, but the texts are not kept
    RECORD = "record"  # asked, and kept
    REPLAY = "replay"  # from the recording alone: the first call that it lacks ends the run
    REPLAY_THEN_LIVE = "replay-then-live"  # from the recording up to the first call that it lacks


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float
    cached: float | None = None  # of input that the provider had in its cache; None: as ``input``


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model resource, resolved at a snapshot. Where its provider is reached is no part of it."""

    name: str  # of the resource
    model: str  # as litellm names it: "openai/gpt-5", "anthropic/…", "ollama_chat/…"
    provider: str  # of the settings' [providers.NAME]; "" means litellm's own defaults for ``model``
    parameters: Mapping[str, Json]  # sent with each request unless the request says otherwise
    fallbacks: tuple[ModelSpec, ...] = ()
    price: Price | None = None  # None: litellm's price list; where that has none, unknown
    context_tokens: int = 32_768


@dataclass(frozen=True, slots=True)
class Budget:
    """What model calls may use, counting those in flight. 0 means: no limit of this kind."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Reply:
    """One answered model call."""

    call_id: str  # in the record of calls
    body: Json  # as OpenAI's chat completion object
    input_tokens: int
    output_tokens: int
    usd: float | None  # None: the price is not known; of a recorded one what it cost then
    latency_ms: float
    recorded: bool  # served from a recording: nothing was asked or paid
    model: str  # name of the model resource that answered


# --- What runs left on record, as another run of the same work is served from it -----------------


@dataclass(frozen=True, slots=True)
class RecordedTool:
    """One tool call of a recorded run, in its order."""

    tool: str
    args: Json
    result: Json  # as the step's observation
    fault: Json  # as WireFault, or None
    served: bool = False  # it was not made in that run, but served from the record of another


@dataclass(frozen=True, slots=True)
class RecordedFetch:
    """One request of a run to the outside world, and what came of it."""

    request: Json  # {"method", "url", "headers", "body"}, the body in base64
    answer: Json  # {"status", "headers", "body"}, or {"error": why nobody answered}


@dataclass(frozen=True, slots=True)
class Recording:
    """What a run may be served from: the model calls and tool calls of runs before it."""

    run_ids: tuple[str, ...]
    snapshot: Snapshot  # on which they were made
    tools: tuple[RecordedTool, ...]
    answers: Mapping[str, str] = field(default_factory=dict)  # a person's, by question
    fetches: tuple[RecordedFetch, ...] | None = None  # None: some were recorded without their answers


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


# Nobody's own: the next run would end alike, whatever it tries.
SHARED = frozenset({KernelFault.NO_MODEL, KernelFault.EVOLUTION_BUDGET, KernelFault.DAY_BUDGET})
# Words for what the kernel alone can know. From a box they are a word like another.
KERNEL_ONLY = frozenset(
    {
        *("no_model", "imported", "feedback", "grader", "grade", "not_recorded", "not_allowed", "waiting"),
        *("rule", "supervisor"),
    }
)
# The run came to an answer, and it is not the one that is wanted.
WRONG_ANSWER = frozenset({KernelFault.CHECK, KernelFault.FEEDBACK})
# The type under which a kind was stored before there were kinds, where that is another word.
_TYPES: Mapping[KernelFault, str] = {
    KernelFault.EVOLUTION_BUDGET: "budget",
    KernelFault.DAY_BUDGET: "budget",
    KernelFault.PROTOCOL: "harness",
}
_OF_TOOLS = ("tool/", "skill/")


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


def kernel_fault(kind: KernelFault, message: str, *, type: str = "", resource: str = "") -> Fault:
    """What the kernel saw. ``type`` where it goes by another word than its kind."""
    return Fault(
        type or _TYPES.get(kind, kind.value), message, resource=resource, origin=Origin.KERNEL, kind=kind
    )


def box_fault(type: str, message: str, where: str = "", resource: str = "") -> Fault:
    """What came out of a box: a tool's where it is about a tool's code, else the harness'. Never the kernel's."""
    origin = Origin.TOOL if resource.startswith(_OF_TOOLS) else Origin.HARNESS
    return Fault(type, message, where, resource, origin)


def origin_of(fault: Fault) -> Origin:
    """Who says it. Of an old record: what names code is that code's, a word of the kernel's is the kernel's."""
    if fault.origin:
        return fault.origin
    if fault.resource or fault.where:
        return Origin.TOOL if fault.resource.startswith(_OF_TOOLS) else Origin.HARNESS
    return Origin.KERNEL if fault.type in _ON_OLD_RECORD else Origin.HARNESS


def kind_of(fault: Fault | None) -> KernelFault:
    """What the kernel saw; NONE where it is not the kernel who says it."""
    if fault is None or origin_of(fault) is not Origin.KERNEL:
        return KernelFault.NONE
    return fault.kind if fault.origin else _old_kind(fault)


def word_of(fault: Fault) -> str:
    """The type as anything may be decided on it: a word that is the kernel's alone means nothing from a box."""
    if fault.type in KERNEL_ONLY and origin_of(fault) is not Origin.KERNEL:
        return f"said {fault.type}"
    return fault.type


_ON_OLD_RECORD: Mapping[str, KernelFault] = {
    kind.value: kind
    for kind in KernelFault
    if kind not in (KernelFault.NONE, KernelFault.OTHER, KernelFault.RULE, KernelFault.SUPERVISOR)
}
# How the gateway began the sentence when whose budget it was stood nowhere else.
_OLD_BUDGETS = {
    "the evolution may use ": KernelFault.EVOLUTION_BUDGET,
    "all runs of a day may use ": KernelFault.DAY_BUDGET,
}


def _old_kind(fault: Fault) -> KernelFault:
    """Of a record from before kinds: here alone, and of such records only, words are read."""
    kind = _ON_OLD_RECORD.get(fault.type, KernelFault.NONE)
    if kind is not KernelFault.BUDGET:
        return kind
    shared = (found for start, found in _OLD_BUDGETS.items() if fault.message.startswith(start))
    return next(shared, kind)


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
