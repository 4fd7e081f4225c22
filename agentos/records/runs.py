"""What happened: runs, their steps, and what they asked of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum

from agentos.records.identity import InputFile, Json, Snapshot, dataclass, digest
from agentos.records.trials import Fault, KernelFault, Origin, Outcome, Result

IMPORT = "import"  # as a run's sandbox: it was made elsewhere, and says nothing of what is here


class Share(StrEnum):
    """Which of the disjoint sets a task belongs to, for good: assigned when first seen."""

    OPEN = "open"  # may serve as evidence or guard
    HOLD_OUT = "hold-out"  # hidden from proposers


def share_of(task_key: str, hold_out: float) -> Share:
    """The set that work with this key belongs to: a stable hash, ``hold_out`` of it hidden."""
    fraction = int(digest(["share", task_key])[:12], 16) / 16**12
    return Share.HOLD_OUT if fraction < hold_out else Share.OPEN


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


# --- What is said of a fault, and what may be decided on it --------------------------------------

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
