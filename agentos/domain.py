"""The vocabulary as types: what a task, a run, an evolution and their parts are.

Every record is a frozen, slotted dataclass and holds only plain data (text, numbers, aware UTC
datetimes, tuples, other records, and JSON values), so that a record can be stored, hashed,
compared and sent anywhere. docs/concepts.md explains the words to a user; this file is what they
mean to the code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from agentos.identity import canonical as canonical
from agentos.identity import digest as digest
from agentos.identity import new_id as new_id

# A JSON value. Not the recursive union: every reader checks what it got (it often comes from a
# sandbox), and the union would only add casts. Records treat one as immutable.
Json: TypeAlias = Any


# --- resources --------------------------------------------------------------------------------


class Kind(StrEnum):
    """What may evolve."""

    PROMPT = "prompt"
    AGENT = "agent"
    TOOL = "tool"
    SKILL = "skill"
    MEMORY = "memory"
    ENVIRONMENT = "environment"
    HARNESS = "harness"


class Effect(StrEnum):
    """What a tool does to the world, as its author declares it."""

    PURE = "pure"
    READ = "read"
    WRITE = "write"
    EXTERNAL = "external"


class Tier(StrEnum):
    """How far an edit reaches; computed from the paths it touches, never declared."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


TIER_OF: Mapping[Kind, Tier] = {
    Kind.MEMORY: Tier.LOW,
    Kind.PROMPT: Tier.LOW,
    Kind.SKILL: Tier.MEDIUM,
    Kind.TOOL: Tier.MEDIUM,
    Kind.AGENT: Tier.HIGH,
    Kind.ENVIRONMENT: Tier.HIGH,
    Kind.HARNESS: Tier.HIGH,
}

RESOURCE_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True, order=True)
class ResourceId:
    """``kind/name``: also the resource's directory in the registry."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Version:
    """One immutable state of a resource."""

    resource: ResourceId
    number: str  # semantic version, for display and tags
    commit: str
    digest: str  # git tree id of the resource's directory; "" when retired
    parent: str | None  # number of the version it came from
    reason: str  # first line of the commit message
    created_at: datetime
    origin: str  # seed, edit, import, upgrade, evolution, revert, pin, retire
    evolution: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of the whole registry that a run executes against."""

    commit: str
    tree: str


# --- tasks ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """A tool and its arguments. ``tool`` is ``name`` or ``skill/tool``."""

    tool: str
    args: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Check:
    """Decides success. ``kind`` is one of checks.KINDS; ``spec`` holds that kind's parameters."""

    kind: str
    spec: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that stands in the workspace when the run starts."""

    path: str  # relative, POSIX
    sha256: str  # of the blob
    size: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use. Everything is enforced outside the run's reach."""

    steps: int = 50
    wall_s: float = 60.0
    memory_mb: int = 512
    output_bytes: int = 1 << 20  # what an answer, an observation, or a stream may hold
    workspace_mb: int = 64
    processes: int = 64
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Task:
    """A goal with inputs, limits and checks."""

    id: str
    name: str
    goal: str
    call: Call | None
    inputs: tuple[InputFile, ...]
    agent: str
    limits: Limits
    effects: tuple[Effect, ...]
    checks: tuple[Check, ...]
    schedule: str | None
    created_at: datetime

    @property
    def key(self) -> str:
        """Identity of the *work*: two tasks with equal keys ask for the same thing."""
        return digest([self.goal, self.call, self.inputs, self.agent, self.checks])


class TaskState(StrEnum):
    """Where a task stands. A scheduled task is ``scheduled`` and spawns queued ones."""

    SCHEDULED = "scheduled"
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


class Share(StrEnum):
    """Which of the disjoint sets a task belongs to, for good: assigned when first seen."""

    OPEN = "open"  # may serve as evidence or guard
    HOLD_OUT = "hold-out"  # hidden from proposers


def share_of(task_key: str, hold_out: float) -> Share:
    """The set that work with this key belongs to: a stable hash, ``hold_out`` of it hidden."""
    fraction = int(digest(["share", task_key])[:12], 16) / 16**12
    return Share.HOLD_OUT if fraction < hold_out else Share.OPEN


# --- runs -------------------------------------------------------------------------------------


class Result(StrEnum):
    """How a run ended."""

    PASSED = "passed"
    FAILED = "failed"
    FLAKY = "flaky"
    INFRA = "infra"
    TIMEOUT = "timeout"
    BUDGET = "budget"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why something did not work, structured, so that signals need not read free text."""

    type: str  # exception class, or one of: check, timeout, memory, output, limit, protocol, ...
    message: str
    where: str = ""  # "path:function" of the innermost frame inside the resource
    resource: str = ""  # ResourceId whose code it was, "" if none


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found."""

    kind: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run used."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run. ``score`` is the share of checks passed, 0 to 1."""

    result: Result
    score: float
    reason: str
    fault: Fault | None = None
    checks: tuple[CheckResult, ...] = ()
    cost: Cost = Cost()


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


# --- evolution --------------------------------------------------------------------------------


class Layer(StrEnum):
    """Where a fault lies; ordered, cheapest first."""

    MEMORY = "memory"
    PROMPT = "prompt"
    SKILL = "skill"
    TOOL = "tool"
    AGENT = "agent"
    ENVIRONMENT = "environment"
    HARNESS = "harness"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Normalised identity of a failure: equal fingerprints are the same failure again."""

    id: str  # 16 hex digits of the digest of the rest
    resource: str  # ResourceId that failed, "" where unknown
    klass: str  # failure class of evolver/taxonomy.toml
    signature: str  # normalised text


@dataclass(frozen=True, slots=True)
class Sighting:
    """One failing run seen to carry a fingerprint."""

    run_id: str
    task_id: str
    task_key: str
    fingerprint: Fingerprint
    seen_at: datetime
    flagged: bool = False
    signals: tuple[str, ...] = ()  # what else its trajectory showed, as "signal@step"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sealed batch of failing runs that anchors one evolution."""

    id: str
    fingerprint: Fingerprint
    run_ids: tuple[str, ...]
    task_ids: tuple[str, ...]  # distinct work: one task for each task key
    sealed_at: datetime
    sha256: str  # digest over fingerprint, run ids and task ids


class EvolutionState(StrEnum):
    """Stages while it runs, then exactly one end state."""

    MINED = "mined"
    REPRODUCING = "reproducing"
    PROPOSING = "proposing"
    REPLAYING = "replaying"
    AWAITING_CONSENT = "awaiting_consent"
    PROMOTING = "promoting"
    PROBATION = "probation"
    PROMOTED = "promoted"
    REJECTED = "rejected"
    NO_IMPROVEMENT = "no_improvement"
    NOT_REPRODUCIBLE = "not_reproducible"
    CANNOT_FIX = "cannot_fix"
    HELD = "held"
    CIRCUIT_BROKEN = "circuit_broken"
    STALE = "stale"
    ROLLED_BACK = "rolled_back"
    CANCELLED = "cancelled"


RUNNING_STATES = frozenset(
    {
        EvolutionState.MINED,
        EvolutionState.REPRODUCING,
        EvolutionState.PROPOSING,
        EvolutionState.REPLAYING,
        EvolutionState.PROMOTING,
    }
)


@dataclass(frozen=True, slots=True)
class Evolution:
    """One pass from evidence to its end state."""

    id: str
    evidence_id: str
    fingerprint_id: str
    state: EvolutionState
    base: Snapshot
    reason: str = ""
    diagnosis: Diagnosis | None = None
    candidate_id: str | None = None  # the best accepted one
    promoted: Snapshot | None = None
    created_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Which resource is at fault, in which layer, and what says so."""

    layer: Layer
    resource: str
    path: str  # file within the registry that an edit would touch
    why: str
    step_refs: tuple[str, ...] = ()  # "run-id#index" of the steps it rests on


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a candidate claims; written before it is tried."""

    evidence_id: str
    cause: str
    edit: str
    files: tuple[str, ...]
    predicted_fixes: tuple[str, ...]  # task ids
    tasks_at_risk: tuple[str, ...]  # task ids
    layer: Layer
    why_this_layer: str


@dataclass(frozen=True, slots=True)
class Edit:
    """One logical change: whole new content of each file it touches."""

    files: Mapping[str, str]  # registry path -> new text
    summary: str
    operator: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed change to a base snapshot; committed under ``refs/candidates/<id>``."""

    id: str
    evolution_id: str
    proposer: str
    rank: int
    manifest: Manifest
    edit: Edit
    base: Snapshot
    snapshot: Snapshot
    screened: str = ""  # "" if it passed the screen, else the reason
    created_at: datetime | None = None


class Arm(StrEnum):
    """Which side of a replay a trial ran on."""

    BASE = "base"
    CANDIDATE = "candidate"


class TrialSet(StrEnum):
    """Why a task is in a replay. The three are disjoint."""

    EVIDENCE = "evidence"
    GUARD = "guard"
    HOLD_OUT = "hold-out"


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


class Decision(StrEnum):
    """What a verdict says."""

    PROMOTE = "promote"
    REJECT = "reject"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A pure function of the trials; bound by hashes to what it judged."""

    id: str
    evolution_id: str
    candidate_id: str
    decision: Decision
    reasons: tuple[str, ...]
    fixed: tuple[str, ...]  # task ids that flipped from failing to passing
    broken: tuple[str, ...]  # task ids that flipped from passing to failing
    flaky: tuple[str, ...]
    candidate_tree: str
    base_tree: str
    manifest_sha256: str
    trials_sha256: str
    policy_sha256: str


@dataclass(frozen=True, slots=True)
class Consent:
    """A person's (or the policy's) approval, issued by the kernel, unforgeable elsewhere."""

    id: str
    evolution_id: str
    candidate_id: str
    candidate_tree: str
    manifest_sha256: str
    verdict_sha256: str
    principal: str  # "person:<login>" or "policy:<tier>=auto"
    expires_at: datetime
    token: str  # hex HMAC-SHA256 over the fields above


@dataclass(frozen=True, slots=True)
class Attestation:
    """Predicted against observed, once the probation is over."""

    id: str
    evolution_id: str
    predicted_fixes: tuple[str, ...]
    observed_fixes: tuple[str, ...]
    predicted_risks: tuple[str, ...]
    observed_regressions: tuple[str, ...]
    verdict: str  # effective, partly, mixed, ineffective, harmful
