"""What trying a snapshot gave before runs were given it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

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


# --- What a second model said of an edit, without having read what its author meant by it --------


class ReviewOpinion(StrEnum):
    """What a review comes to."""

    PASS = "pass"  # noqa: S105 - an opinion
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Review:
    """It can hold an edit back and promotes none. Bound by hashes to what was reviewed."""

    id: str
    evolution_id: str
    candidate_id: str
    candidate_tree: str
    evidence_sha256: str
    model: str  # resource that answered; "" when none could be asked
    opinion: ReviewOpinion
    reasons: tuple[str, ...]
    at: datetime
