"""The ledger's tables. Rows never leave this package: what goes in and out are domain records.

Times are ISO 8601 text in UTC, JSON is text, and ``body`` is the whole record, compressed where it is long
(``codec.kept``). The migrations create the tables; a test compares the two.
"""

from sqlalchemy import Index, MetaData, UniqueConstraint
from sqlmodel import Field, SQLModel


class _Table(SQLModel):
    # A registry of our own, so that tables of a user's program in the same process stay apart.
    metadata = MetaData()


class TaskRow(_Table, table=True):
    __tablename__ = "task"

    no: int | None = Field(default=None, primary_key=True)
    id: str = Field(unique=True)
    name: str
    task_key: str
    share: str
    state: str = Field(index=True)
    agent: str
    created_at: str
    body: str
    parent: str = Field(default="", index=True)
    schedule_id: str = Field(default="", index=True)


class RunRow(_Table, table=True):
    """``seq`` is the place in the order of finishing, absent while the run is open."""

    __tablename__ = "run"
    __table_args__ = (UniqueConstraint("task_id", "attempt"), Index("ix_run_task_key_seq", "task_key", "seq"))

    no: int | None = Field(default=None, primary_key=True)
    id: str = Field(unique=True)
    task_id: str
    task_key: str
    share: str
    attempt: int
    commit_id: str
    result: str | None = Field(default=None, index=True)
    seq: int | None = Field(default=None, unique=True)
    started_at: str
    finished_at: str | None = None
    body: str


class RunResourceRow(_Table, table=True):
    """Which finished run used which resource, in the order that ``runs_using`` asks for."""

    __tablename__ = "run_resource"
    __table_args__ = (Index("ix_run_resource_resource_seq", "resource", "seq"), {"sqlite_with_rowid": False})

    resource: str = Field(primary_key=True)
    task_key: str = Field(primary_key=True)
    seq: int = Field(primary_key=True)


class StepRow(_Table, table=True):
    __tablename__ = "step"
    __table_args__ = (UniqueConstraint("run_id", "position"),)

    no: int | None = Field(default=None, primary_key=True)
    run_id: str
    position: int
    node: str
    action: str
    observation: str
    fault: str | None
    started_at: str
    duration_ms: float


class PrunedRow(_Table, table=True):
    """Runs with ``seq`` from one to the other lost their steps, but for those that the audit entry names."""

    __tablename__ = "pruned"

    seq: int | None = Field(default=None, primary_key=True)
    from_seq: int
    to_seq: int
    pruned_at: str


class FlagRow(_Table, table=True):
    __tablename__ = "flag"

    seq: int | None = Field(default=None, primary_key=True)
    run_id: str = Field(index=True)
    reason: str
    flagged_at: str


class _Record(_Table):
    seq: int | None = Field(default=None, primary_key=True)
    id: str = Field(unique=True)
    body: str


class SightingRow(_Record, table=True):
    __tablename__ = "sighting"

    run_id: str
    task_key: str
    fingerprint: str = Field(index=True)


class EvidenceRow(_Record, table=True):
    __tablename__ = "evidence"

    fingerprint: str


class EvolutionRow(_Record, table=True):
    __tablename__ = "evolution"
    __table_args__ = (Index("ix_evolution_resource_state", "resource", "state"),)

    evidence_id: str = Field(index=True)
    fingerprint_id: str = Field(index=True)
    state: str = Field(index=True)
    resource: str = ""


class CandidateRow(_Record, table=True):
    __tablename__ = "candidate"

    evolution_id: str = Field(index=True)


class TrialRow(_Record, table=True):
    __tablename__ = "trial"

    evolution_id: str = Field(index=True)
    candidate_id: str
    task_id: str


class TrialPackRow(_Table, table=True):
    """The trials of an evolution that is over, as one compressed list in ``body``.

    ``trials`` and ``cpu_s`` are of those that it made itself, none that were taken over.
    """

    __tablename__ = "trial_pack"

    seq: int | None = Field(default=None, primary_key=True)
    evolution_id: str = Field(index=True)
    trials: int
    cpu_s: float
    body: bytes


class SafetyRateRow(_Record, table=True):
    __tablename__ = "safety_rate"

    evolution_id: str = Field(index=True)
    candidate_id: str
    tree: str = Field(index=True)


class VerdictRow(_Record, table=True):
    __tablename__ = "verdict"

    evolution_id: str = Field(index=True)
    candidate_id: str = Field(index=True)


class ConsentRow(_Record, table=True):
    __tablename__ = "consent"

    evolution_id: str = Field(index=True)
    candidate_id: str = Field(index=True)


class AttestationRow(_Record, table=True):
    __tablename__ = "attestation"

    evolution_id: str = Field(index=True)


class QuestionRow(_Record, table=True):
    __tablename__ = "question"

    task_id: str = Field(index=True)
    root_id: str = Field(index=True)
    answer: str | None = None


class ProposalRow(_Record, table=True):
    __tablename__ = "proposal"

    run_id: str = Field(index=True)
    state: str = Field(index=True)


class ProbeRow(_Record, table=True):
    __tablename__ = "probe"

    driving_sha256: str = Field(index=True)
    evolution_id: str = Field(index=True)


class ReviewRow(_Record, table=True):
    __tablename__ = "review"

    evolution_id: str = Field(index=True)
    candidate_id: str = Field(index=True)


class SkippedRunRow(_Record, table=True):
    __tablename__ = "skipped_run"

    schedule_id: str = Field(index=True)


class DeliveryRow(_Record, table=True):
    __tablename__ = "delivery"

    run_id: str = Field(index=True)
    schedule_id: str = Field(index=True)
    state: str = Field(index=True)
    path: str = Field(index=True)


class ArrivalRow(_Table, table=True):
    """A file in a watched folder that was seen, by what tells a change: derived, may be forgotten."""

    __tablename__ = "arrival"
    __table_args__ = {"sqlite_with_rowid": False}

    schedule_id: str = Field(primary_key=True)
    path: str = Field(primary_key=True)
    signature: str


class FeedbackRow(_Record, table=True):
    __tablename__ = "feedback"

    run_id: str = Field(index=True)
    task_key: str = Field(index=True)
    rating: str = Field(index=True)


class StandingCheckRow(_Record, table=True):
    __tablename__ = "standing_check"

    task_name: str = Field(index=True)


class NotificationRow(_Record, table=True):
    __tablename__ = "notification"

    subject: str = Field(index=True)
    state: str = Field(index=True)


class AuditRow(_Table, table=True):
    __tablename__ = "audit"

    seq: int = Field(primary_key=True)
    at: str
    event: str = Field(index=True)
    subject: str = Field(index=True)
    detail: str
    previous: str
    hash: str


class CursorRow(_Table, table=True):
    __tablename__ = "cursor"

    name: str = Field(primary_key=True)
    position: int


class MemoRow(_Table, table=True):
    """Small state of the daemon by key: heartbeat, skills folder, and the like."""

    __tablename__ = "memo"

    key: str = Field(primary_key=True)
    value: str


METADATA = _Table.metadata
