"""What passes between runs and people: questions with their answers, and memories that runs propose."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Question:
    """What a run asked a person. It is answered once, and for the whole task."""

    id: str
    task_id: str  # of the run that asked
    root_id: str  # the task that people gave: the asking one, or that which handed it over
    run_id: str  # that asked first
    text: str
    choices: tuple[str, ...]  # the answers that are possible; empty: any
    asked_at: datetime
    answer: str | None = None
    answered_at: datetime | None = None


class ProposalState(StrEnum):
    """What became of a proposed memory."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A memory that a run would keep. Nothing holds it for true before it is accepted.

    Equal texts are one proposal, whichever run comes with them: the first one is kept.
    """

    id: str
    run_id: str
    task_key: str
    text: str
    why: str
    at: datetime
    state: ProposalState = ProposalState.OPEN
    decided_at: datetime | None = None
    resource: str = ""  # the memory that it became
    reason: str = ""  # for which it was rejected
