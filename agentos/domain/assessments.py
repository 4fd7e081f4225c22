"""What is said of a snapshot beside its trials: by a probe before runs get it, by safety probes, by a second model."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from agentos.domain.evolution import Arm
from agentos.domain.resources import Snapshot


@dataclass(frozen=True, slots=True)
class Pass:
    """One answer of one fresh box, beside one of the base in the same minute (0.0: there was none)."""

    boot: str  # drawn for this box; the answer named it
    agent: str
    start_s: float  # until the harness recorded its first step
    memory_mb: float  # the box's peak; 0.0 where it cannot be known
    base_start_s: float = 0.0
    base_memory_mb: float = 0.0


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of probing a snapshot. ``reason`` says why it did not pass, or who vouches for it.

    What is probed is how runs are driven, so another snapshot with the same harnesses, agents and
    environments (``driving_sha256``) has passed with it.
    """

    id: str
    snapshot: Snapshot
    driving_sha256: str
    passed: bool
    reason: str
    at: datetime
    evolution_id: str = ""  # "" where people changed the registry
    passes: tuple[Pass, ...] = ()
    canaries: tuple[str, ...] = ()  # ids of the tasks that were tried again
    seconds: float = 0.0


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


class ReviewOpinion(StrEnum):
    """What a review comes to."""

    PASS = "pass"  # noqa: S105 - an opinion
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Review:
    """What a second model said of an edit, without having read what its author meant by it.

    It can hold an edit back and promotes none. Bound by hashes to what was reviewed.
    """

    id: str
    evolution_id: str
    candidate_id: str
    candidate_tree: str
    evidence_sha256: str
    model: str  # resource that answered; "" when none could be asked
    opinion: ReviewOpinion
    reasons: tuple[str, ...]
    at: datetime
