"""What happened: runs, their steps and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from agentos.domain.faults import Fault
from agentos.domain.resources import Snapshot
from agentos.domain.tasks import InputFile, Share
from agentos.identity import Json

IMPORT = "import"  # as a run's sandbox: it was made elsewhere, and says nothing of what is here


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


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found."""

    kind: str
    passed: bool
    detail: str = ""
    plugin: str = (
        ""  # name, distribution and version of what brings this kind of check, where it is installed
    )


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
    parent: str = ""  # the run that handed this one its task
    resumes: str = ""  # the run of the same task whose record this one went on from
    regrades: str = ""  # the run of which this is the record, held against a person's checks

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


def is_reference(value: Json) -> bool:
    """Whether it stands for a large value that lies in a blob. The ledger stores no other of this form."""
    return isinstance(value, dict) and set(value) == {"blob", "size", "head", "tail"}
