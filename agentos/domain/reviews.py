"""What a second model said of an edit, without having read what its author meant by it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


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
