"""Where each record type is kept: its table, and which of its fields are columns of their own.

A record is stored whole as JSON; fields that are searched for are columns besides. Standard
library only, because the reading side of the command line uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from agentos.domain import (
    Attestation,
    Candidate,
    Consent,
    Delivery,
    Evidence,
    Evolution,
    Feedback,
    Fingerprint,
    MemoryProposal,
    Notification,
    Probe,
    Question,
    Review,
    SafetyRate,
    Sighting,
    SkippedRun,
    StandingCheck,
    Trial,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class RecordType:
    """``columns`` are names of fields or properties; ``append_only`` records never change once they are there.

    Queries look into the bodies of ``searched`` ones, so these are never compressed.
    """

    table: str
    columns: tuple[str, ...]
    append_only: bool = False
    searched: bool = False


SHELVES: Mapping[type, RecordType] = {
    Sighting: RecordType("sighting", ("run_id", "task_key", "fingerprint"), append_only=True, searched=True),
    Evidence: RecordType("evidence", ("fingerprint",), append_only=True),
    Evolution: RecordType("evolution", ("evidence_id", "fingerprint_id", "state", "resource")),
    Candidate: RecordType("candidate", ("evolution_id",)),
    Trial: RecordType("trial", ("evolution_id", "candidate_id", "task_id"), append_only=True, searched=True),
    SafetyRate: RecordType("safety_rate", ("evolution_id", "candidate_id", "tree"), append_only=True),
    Verdict: RecordType("verdict", ("evolution_id", "candidate_id"), append_only=True),
    Review: RecordType("review", ("evolution_id", "candidate_id"), append_only=True),
    Consent: RecordType("consent", ("evolution_id", "candidate_id")),
    Attestation: RecordType("attestation", ("evolution_id",)),
    Question: RecordType("question", ("task_id", "root_id", "answer")),
    MemoryProposal: RecordType("proposal", ("run_id", "state")),
    SkippedRun: RecordType("skipped_run", ("schedule_id",)),
    Delivery: RecordType("delivery", ("run_id", "schedule_id", "state", "path")),
    Feedback: RecordType("feedback", ("run_id", "task_key", "rating"), append_only=True),
    StandingCheck: RecordType("standing_check", ("task_name",), append_only=True),
    Notification: RecordType("notification", ("subject", "state")),
    Probe: RecordType("probe", ("driving_sha256", "evolution_id"), append_only=True),
}


def shelf_of(kind: type) -> RecordType:
    """The shelf; TypeError for a type that the ledger does not keep this way."""
    if kind not in SHELVES:
        raise TypeError(f"{kind.__name__} is not a record of the ledger")
    return SHELVES[kind]


def id_of(record: object) -> str:
    """The id that a record is kept under.

    A sighting is one run carrying one fingerprint; seen by a miner and flagged by a person are two.
    """
    if isinstance(record, Sighting):
        return f"{record.run_id}:{record.fingerprint.id}{':flagged' if record.flagged else ''}"
    return str(getattr(record, "id"))  # noqa: B009 - the shelves hold types without a shared base


def condition(wanted: Mapping[str, object]) -> tuple[str, list[object]]:
    """For ``find``: the WHERE of these columns, "" for none, and its values; a frozenset is any of its values."""
    clauses, values = [], []
    for name, value in wanted.items():
        own = [*map(column_value, value if isinstance(value, frozenset) else (value,))]
        clauses.append(f"{name} IN ({', '.join('?' * len(own))})")
        values += own
    return "WHERE " + " AND ".join(clauses) if clauses else "", values


def matches(record: object, wanted: Mapping[str, object]) -> bool:
    """Whether the record's fields are what ``find`` was asked for."""
    for name, value in wanted.items():
        found = getattr(record, name)
        if found != value and not (isinstance(value, frozenset) and found in value):
            return False
    return True


def column_value(value: object) -> object:
    """A field as it stands in its column."""
    if isinstance(value, Fingerprint):
        return value.id
    return value.value if isinstance(value, Enum) else value
