"""What passes between runs and people: questions, proposed memories, what people say of runs, what they are told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from agentos.domain.tasks import Check

# Of the cursors by a fingerprint's id, odd while it is muted: its failures are mined and counted all the same.
MUTED_CURSOR = "muted:"


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
class MemoryProposal:
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


class Rating(StrEnum):
    """What a person thinks of a run."""

    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Feedback:
    """One person's word on a run. Evidence or a guard may be made of it; a verdict never is.

    Of its ``checks`` a task is made that asks for the run's work with these beside its own: ``task_id``. What
    the run left is held against them, as the run ``regraded_id``. Without checks there is neither.
    """

    id: str
    run_id: str
    task_key: str  # of the run's work
    rating: Rating
    because: str
    checks: tuple[Check, ...]
    principal: str  # who, as the kernel knows it (consent.person)
    at: datetime

    @property
    def task_id(self) -> str:
        return f"task-{self.id.partition('-')[2]}"

    @property
    def regraded_id(self) -> str:
        return f"run-{self.id.partition('-')[2]}"


@dataclass(frozen=True, slots=True)
class StandingCheck:
    """A check that a person accepted for all later tasks of a name, or (``ends``) took back."""

    id: str
    task_name: str
    check: Check
    principal: str
    at: datetime
    ends: str = ""  # the StandingCheck that this one takes back


class NotificationState(StrEnum):
    """What became of a notification."""

    MUTED = "muted"  # nobody wants to be told; it is kept because the next change is told from it
    PENDING = "pending"
    SENDING = "sending"
    DELIVERED = "delivered"
    FAILED = "failed"  # given up
    UNCERTAIN = "uncertain"  # the daemon ended while it was sent: it is not sent twice


@dataclass(frozen=True, slots=True)
class Notification:
    """One change of state that one channel is told of."""

    id: str  # of the audit entry that told the change, and the channel
    subject: str  # what changed: task:NAME, run:ID, evolution:ID, budget:DAY
    event: str  # a notify.EVENTS
    channel: str  # command, mail, webhook, desktop; "" of a muted one
    title: str
    text: str
    at: datetime
    state: NotificationState = NotificationState.PENDING
    tries: int = 0
    due: datetime | None = None  # of the next try
    why: str = ""  # the last one did not succeed
