"""Where each record type is kept: its table, and which of its fields are columns of their own.

A record is stored whole as JSON; fields that are searched for are columns besides. Standard
library only, because the reading side of the command line uses it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from enum import Enum

from agentos.domain import (
    RUNNING_STATES,
    Attestation,
    Candidate,
    Consent,
    Delivery,
    Evidence,
    Evolution,
    Feedback,
    Fingerprint,
    Json,
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
    dataclass,
)
from agentos.ledger.rows.codec import Rows, in_bundle, plain


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


def is_packed(record: object) -> bool:
    """Whether its text is compressed: not that of an evolution under way, each stage of which writes it again."""
    under_way = isinstance(record, Evolution) and record.state in RUNNING_STATES
    return not under_way and not shelf_of(type(record)).searched


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
    if value.__class__ is str:  # most are: told at once
        return value
    if isinstance(value, Fingerprint):
        return value.id
    return value.value if isinstance(value, Enum) else value


# --- What an audit entry says of the records that it speaks of: their digests, as they stand in their rows
# ``detail["records"]`` maps ``table/id`` to the SHA-256 of a record's stored text; of a run that is over, of its
# text and its steps. ``detail["sets"]`` maps a table to the number of an evolution's records in it and the
# SHA-256 of all their texts in their order. The text is hashed and not the record, so that a release that adds a
# field changes nothing of what an earlier one wrote.


RECORDS, SETS = "records", "sets"
SET_TABLES = ("candidate", "trial", "safety_rate", "review", "attestation")
STEP_COLUMNS = "position, node, action, observation, fault, started_at, duration_ms"


def of_text(body: str | bytes) -> str:
    """Of one record, by its stored body."""
    return hashlib.sha256(plain(body).encode()).hexdigest()


def of_run(rows: Rows, run_id: str, body: str | bytes) -> str:
    """Of a run that is over: its outcome and answer, and every step."""
    found = hashlib.sha256(plain(body).encode())
    for step in rows(f"SELECT {STEP_COLUMNS} FROM step WHERE run_id = ? ORDER BY position", run_id):  # noqa: S608
        found.update(json.dumps([plain(it) if isinstance(it, bytes) else it for it in step]).encode())
    return found.hexdigest()


def texts_of(rows: Rows, table: str, evolution_id: str) -> list[str]:
    """The stored texts of an evolution's records in one table, oldest first, those that are packed included."""
    own: list[str] = []
    if table == "trial":
        for (body,) in rows("SELECT body FROM trial_pack WHERE evolution_id = ? ORDER BY seq", evolution_id):
            own += [json.dumps(item, separators=(",", ":")) for item in in_bundle(body)]
    sql = f"SELECT body FROM {table} WHERE evolution_id = ? ORDER BY seq"  # noqa: S608 - of this module
    return own + [plain(body) for (body,) in rows(sql, evolution_id)]


def of_set(texts: Sequence[str]) -> str:
    """Of several records in their order."""
    found = hashlib.sha256()
    for text in texts:
        found.update(hashlib.sha256(text.encode()).digest())
    return found.hexdigest()


def of_records(rows: Rows, records: Sequence[object], texts: Mapping[str, str]) -> dict[str, Json]:
    """What the entry that speaks of these records says of them beside its own words. ``texts``: by ``table/id``.

    An evolution is sealed with all that belongs to it once it has ended; until then it changes too often.
    """
    ended = [item for item in records if isinstance(item, Evolution) and item.ended_at is not None]
    sealed = [item for item in records if not isinstance(item, Evolution) or item in ended]
    said: dict[str, Json] = {}
    if sealed:
        names = [f"{shelf_of(type(item)).table}/{id_of(item)}" for item in sealed]
        said[RECORDS] = {name: of_text(texts[name]) for name in names}
    for evolution in ended:
        found = {table: texts_of(rows, table, evolution.id) for table in SET_TABLES}
        said[SETS] = {table: [len(texts), of_set(texts)] for table, texts in found.items() if texts}
    return said
