"""Where each record type is kept, which of its fields are columns of their own, and the statements that write rows.

A record is stored whole as JSON; fields that are searched for are columns besides. Standard
library only, because the reading side of the command line uses it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Any

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
    Run,
    SafetyRate,
    Share,
    Sighting,
    SkippedRun,
    StandingCheck,
    Task,
    TaskState,
    Trial,
    TrialSet,
    Verdict,
    dataclass,
)
from agentos.errors import Conflict, ErrorKind, NotFound
from agentos.ledger.rows.codec import (
    Rows,
    encode,
    from_text,
    in_bundle,
    kept,
    plain,
    time_text,
    to_json,
    to_text,
    written,
)
from agentos.ledger.rows.schema import LedgerConnection


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


RUN_ENDS = ("run.finished", "run.imported", "run.regraded")  # events of entries with the records of a run
RECORDS, SETS = "records", "sets"
SET_TABLES = ("candidate", "trial", "safety_rate", "review", "attestation")
STEP_COLUMNS = "position, node, action, observation, fault, started_at, duration_ms"


def of_text(body: str | bytes) -> str:
    """Of one record, by its stored body."""
    return hashlib.sha256(plain(body).encode()).hexdigest()


def of_run(rows: Rows, run_id: str, body: str | bytes) -> str:
    """Of a run that is over: its outcome and answer, and every step."""
    found = hashlib.sha256(plain(body).encode())
    for step in rows(f"SELECT {STEP_COLUMNS} FROM step WHERE run_id = ? ORDER BY position", run_id):
        found.update(json.dumps([plain(it) if isinstance(it, bytes) else it for it in step]).encode())
    return found.hexdigest()


def texts_of(rows: Rows, table: str, evolution_id: str) -> list[str]:
    """The stored texts of an evolution's records in one table, oldest first, those that are packed included."""
    own: list[str] = []
    if table == "trial":
        for (body,) in rows("SELECT body FROM trial_pack WHERE evolution_id = ? ORDER BY seq", evolution_id):
            own += [json.dumps(item, separators=(",", ":")) for item in in_bundle(body)]
    sql = f"SELECT body FROM {table} WHERE evolution_id = ? ORDER BY seq"
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


# --- Statements as text: sqlite3 keeps what it prepared by it ----------------------------------


# ruff: noqa: S608 - names of tables and columns are constants of this package; values are bound


SEEN = "coalesce(CAST(json_extract(body, '$.hidden') AS text), '') <> '1'"  # sightings of work that is not hidden


@contextmanager
def transaction(connection: LedgerConnection) -> Iterator[None]:
    """All that is done inside is on disk afterwards, or none of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:  # something was raised; a full disk has rolled it back already
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")


def first_value(connection: LedgerConnection, sql: str, *values: object) -> Any:
    """The first column of the first row, None without one."""
    row = connection.execute(sql, values).fetchone()
    return row[0] if row else None


def body_of(connection: LedgerConnection, table: str, id: str) -> str | bytes:
    """What is stored of the record; raises NotFound."""
    body: str | bytes | None = first_value(connection, f"SELECT body FROM {table} WHERE id = ?", id)
    if body is None:
        raise NotFound(f"there is no {table} {id}")
    return body


def insert(connection: LedgerConnection, table: str, row: Mapping[str, object], more: str = "") -> None:
    """One row; ``more`` comes after its values."""
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks}){more}", tuple(row.values()))


def insert_all(connection: LedgerConnection, table: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Rows with the same columns, one at least."""
    names, marks = ", ".join(rows[0]), ", ".join("?" * len(rows[0]))
    sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"
    connection.executemany(sql, (tuple(row.values()) for row in rows))


def update(connection: LedgerConnection, table: str, id: str, new: Mapping[str, object]) -> None:
    """Columns of a row. Only those that change are to be given: each index of another is written all the same."""
    changes = ", ".join(f"{name} = ?" for name in new)
    connection.execute(f"UPDATE {table} SET {changes} WHERE id = ?", (*new.values(), id))


def upsert(connection: LedgerConnection, table: str, key: Sequence[str], row: Mapping[str, object]) -> None:
    """One row, or its new values where one with the same ``key`` stands."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in row if name not in key)
    insert(connection, table, row, f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}")


# --- Tasks and runs as rows: what stands in columns beside the record itself ---------------------


def run_row(run: Run, text: str) -> dict[str, object]:
    """Of a run, which is ``text``, but for ``seq``, which is its place among those that are over."""
    return {
        "id": run.id,
        "task_id": run.task_id,
        "task_key": run.task_key,
        "share": run.share.value,
        "attempt": run.attempt,
        "commit_id": run.snapshot.commit,
        "result": run.outcome.result.value if run.outcome else None,
        "started_at": time_text(run.started_at),
        "finished_at": time_text(run.finished_at) if run.finished_at else None,
        "body": kept(text),
    }


def task_row(task: Task, share: Share, state: TaskState) -> dict[str, object]:
    """Of a task."""
    return {
        "id": task.id,
        "name": task.name,
        "task_key": task.key,
        "share": share.value,
        "state": state.value,
        "agent": task.agent,
        "created_at": time_text(task.created_at),
        "parent": task.parent,
        "schedule_id": task.schedule_id,
        "body": kept(to_text(task)),
    }


# --- Records: all of a kind by one look-up, and by one insert where they are new -------------------


def put(connection: LedgerConnection, *records: object) -> dict[str, str]:
    """Insert, or replace those with the same ids; raises Conflict for one that never changes and would, and for what
    an evolution's end leaves no room for.

    Returns the texts of all, by ``table/id``.
    """
    by_kind: dict[type, list[object]] = {}
    for record in records:
        by_kind.setdefault(type(record), []).append(record)
    texts: dict[str, str] = {}
    for kind, group in by_kind.items():
        shelf = shelf_of(kind)
        put_here = _put_alike(connection, shelf, group)
        texts |= {f"{shelf.table}/{name}": text for name, text in put_here.items()}
    return texts


def _ended(connection: LedgerConnection, record: object, before: str | None) -> Evolution | None:
    """The evolution that has ended and that the record would open again, or add to what its end was said of.

    A person may end it, in another process, while it is put on a newer base or tried on fresh work; and while a person
    rejects it, it may be promoted, which is never forgotten.
    """
    if isinstance(record, Evolution):
        stored = from_text(Evolution, before) if before is not None else None
        if record.ended_at is not None and (record.promoted or not (stored and stored.promoted)):
            return None
    elif isinstance(record, Candidate) or (isinstance(record, Trial) and record.set is TrialSet.FRESH):
        body = first_value(connection, "SELECT body FROM evolution WHERE id = ?", record.evolution_id)
        stored = from_text(Evolution, body) if body is not None else None
    else:
        return None
    return stored if stored is not None and stored.ended_at is not None else None


def _put_alike(
    connection: LedgerConnection, shelf: RecordType, records: Sequence[object]
) -> Mapping[str, str]:
    ids = [*map(id_of, records)]
    names = ("id", "body", *shelf.columns)
    sql = f"SELECT {', '.join(names)} FROM {shelf.table} WHERE id IN ({', '.join('?' * len(ids))})"
    rows = {row[0]: dict(zip(names, row, strict=True)) for row in connection.execute(sql, ids)}
    there = {name: plain(row["body"]) for name, row in rows.items()}
    new: dict[str, dict[str, object]] = {}
    for name, record in zip(ids, records, strict=True):
        data = to_json(record)
        text = encode(data)
        if there.get(name) == text:
            continue
        if name in there and shelf.append_only:
            raise Conflict(
                f"the {shelf.table} {name} stands already and is never changed", kind=ErrorKind.FIXED
            )
        if (over := _ended(connection, record, there.get(name))) is not None:
            raise Conflict(
                f"the evolution {over.id} has ended meanwhile: it is {over.state.value}.", kind=ErrorKind.OVER
            )
        row = {column: column_value(getattr(record, column)) for column in shelf.columns}
        row |= {"id": name, "body": written(record, data, text, packed=is_packed(record))}
        if name in there and name not in new:
            changed = {column: value for column, value in row.items() if rows[name][column] != value}
            update(connection, shelf.table, name, changed)
            rows[name] = row
        else:
            new[name] = row
        there[name] = text
    if new:
        insert_all(connection, shelf.table, [*new.values()])
    return there
