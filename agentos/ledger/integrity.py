"""Holds the ledger's rows and blobs against what the audit log says of them, both ways.

Each run, batch of evidence, verdict, consent and evolution has its entry, and each such entry its row; what an
entry has a digest of stands in its row as it did. Entries of earlier releases carry no digests: there only
what they name in words is compared. Blobs are compared with their names, and every one that a row names is
there. What is derived from the rest (cursors, memos, which run used what, sightings of runs) is not looked at.
"""

# ruff: noqa: S608 - names of tables and columns come from this package; values are bound

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentos.domain import (
    RUNNING_STATES,
    Evidence,
    EvolutionState,
    Json,
    Run,
    Sighting,
    Task,
    Trial,
    digest,
    is_reference,
)
from agentos.errors import NotFound, Unavailable
from agentos.ledger.audit import AuditHead, Entry, HeadFile, Noted, PrunedTotals, faults, pruned_so_far
from agentos.ledger.blobs import BlobStore
from agentos.ledger.connect import all_rows, tables_of
from agentos.ledger.reading import Reader
from agentos.ledger.retention import tasks_without_inputs
from agentos.ledger.rows.codec import data_of, fields_of, from_text, plain, time_text
from agentos.ledger.rows.record_types import (
    RECORDS,
    RUN_ENDS,
    SETS,
    SHELVES,
    column_value,
    id_of,
    of_run,
    of_set,
    of_text,
    texts_of,
)
from agentos.ledger.rows.schema import LedgerConnection, unavailable

_SPOKEN = ("feedback", "standing_check")  # records of people: each has its entry


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


class LedgerSnapshot(Reader):
    """Sees one moment of the ledger, whatever is written meanwhile. Use as a context manager, on one thread."""

    _one: LedgerConnection | None = None
    _kept: AuditHead | None = None

    def __enter__(self) -> LedgerSnapshot:
        # The file first: it is never ahead of what was committed, so a writer in between cannot
        # make a whole chain look cut.
        self._kept = HeadFile(self.path.with_name("audit.head")).read()
        self._one = self._take()
        if isinstance(self._one, sqlite3.Connection):
            # what somebody wrote there is a fault to be told, and no reason to stop
            self._one.text_factory = _text
        with self._connection() as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM memo").fetchone()  # the moment is that of the first read
        return self

    def __exit__(self, *_: object) -> None:
        if self._one:
            self._one.close()
        self._one = None
        self.close()

    @contextmanager
    def _connection(self) -> Iterator[LedgerConnection]:
        if self._one is None:
            with super()._connection() as connection:
                yield connection
            return
        try:
            yield self._one
        except sqlite3.DatabaseError as error:
            raise unavailable(self.path, error) from error

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """What a statement gives."""
        return self._rows(sql, *values)

    def tables(self) -> list[str]:
        """Names of all tables."""
        with self._connection() as connection:
            return tables_of(connection)

    def every_row(self, table: str) -> Iterator[Mapping[str, Any]]:
        """All rows of a table by column, never all of them in memory."""
        with self._connection() as connection:
            columns, rows = all_rows(connection, table)
            for row in rows:
                yield dict(zip(columns, row, strict=True))

    def chain_faults(self, noted: Sequence[Noted] = ()) -> list[str]:
        """As ``verify``, of this moment."""
        return faults(self.entries(), self._kept, noted)


# States in which no edit is proposed any more.
_OVER = frozenset(EvolutionState) - RUNNING_STATES - {EvolutionState.AWAITING_CONSENT}


@dataclass(slots=True)
class AuditedDigests:
    """What all entries say, by subject; of several on one the newest."""

    runs: dict[str, Entry] = field(default_factory=dict)
    evidence: dict[str, Entry] = field(default_factory=dict)
    verdicts: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # evolution, candidate, decision
    consents: dict[str, Entry] = field(default_factory=dict)
    evolutions: dict[str, str] = field(default_factory=dict)  # id -> its newest state, "" if only opened
    flags: Counter[tuple[str, str]] = field(default_factory=Counter)  # run, reason
    records: dict[str, tuple[int, str]] = field(default_factory=dict)  # table/id -> entry, digest
    sets: dict[str, tuple[int, Mapping[str, Json]]] = field(default_factory=dict)  # by evolution
    pruned: PrunedTotals = field(default_factory=PrunedTotals)
    since: int = 0  # the first entry with a digest; 0 while there is none


def told(reader: LedgerSnapshot) -> AuditedDigests:
    """Read the whole log once."""
    found = AuditedDigests(pruned=pruned_so_far(reader.rows))
    for entry in reader.entries():
        detail = entry.detail
        if not isinstance(detail, dict):
            continue
        _remember(found, entry, detail)
        # of another form they were written by somebody else, which the chain tells
        records, sets = detail.get(RECORDS), detail.get(SETS)
        if isinstance(records, dict) or isinstance(sets, dict):
            found.since = found.since or entry.seq
        if isinstance(records, dict):
            found.records |= {name: (entry.seq, sha256) for name, sha256 in records.items()}
        if isinstance(sets, dict):
            found.sets[entry.subject] = (entry.seq, sets)
    return found


def _remember(found: AuditedDigests, entry: Entry, detail: Mapping[str, Json]) -> None:
    event, subject = entry.event, entry.subject
    if event in RUN_ENDS:
        found.runs[subject] = entry
    elif event == "run.flagged":
        found.flags[subject, str(detail.get("reason"))] += 1
    elif event == "evidence.sealed":
        found.evidence[subject] = entry
        found.evolutions.setdefault(str(detail.get("evolution")), "")
    elif event == "evolution.reconsider":
        found.evolutions.setdefault(subject, "")
    elif event.startswith("evolution."):
        found.evolutions[subject] = event.removeprefix("evolution.")
    elif event == "verdict":
        found.verdicts[subject, str(detail.get("candidate")), str(detail.get("decision"))] += 1
    elif event == "consent":
        found.consents[str(detail.get("consent"))] = entry


def rows_faults(reader: LedgerSnapshot, log: AuditedDigests) -> Iterator[str]:
    """Where rows and entries do not agree, a sentence each."""
    looks = [
        _sealed(reader, log),  # first, as it names a row that cannot be read
        _runs(reader, log),
        _unfinished(reader),
        _tasks(reader),
        _flags(reader, log),
        _spoken(reader, log),
        _evidence(reader, log),
        _decisions(reader, log),
        _evolutions(reader, log),
        _sets(reader, log),
        _columns(reader),
    ]
    for look in looks:
        try:
            yield from look
        except Unavailable as error:
            yield f"{error}; what comes after it was not looked at"
        # a column or a detail of a kind that this program never writes there: to be told as well
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            yield f"a row is damaged ({type(error).__name__}: {error}); what comes after it was not looked at"


def _runs(reader: LedgerSnapshot, log: AuditedDigests) -> Iterator[str]:
    missing = dict(log.runs)
    pruned = {item: list[str]() for item in log.pruned.ranges}
    sql = (
        "SELECT seq, id, task_id, task_key, share, commit_id, attempt, finished_at, result, body FROM run "
        "WHERE seq IS NOT NULL ORDER BY seq"
    )
    for seq, name, *columns, body in reader.rows(sql):
        entry = missing.pop(name, None)
        if entry is None:
            yield f"the run {name} is over, and no audit entry says so"
            continue
        try:
            run = from_text(Run, body)
        except Unavailable as error:
            yield f"the run {name}: {error}"
            continue
        ended = run.outcome.result.value if run.outcome else None
        at = time_text(run.finished_at) if run.finished_at else None
        own = (run.task_id, run.task_key, run.share.value, run.snapshot.commit, run.attempt, at, ended)
        if (name, *columns) != (run.id, *own):
            yield f"the run {name}: its columns are not what its record says"
        if ended != entry.detail.get("result"):
            yield f"the run {name} is {ended} on record, and entry {entry.seq} of the audit log says {entry.detail.get('result')}"
        elif span := log.pruned.range_with(name, seq):
            pruned[span].append(plain(body))
        elif (sha256 := log.records.get(f"run/{name}", (0, ""))[1]) and sha256 != of_run(
            reader.rows, name, body
        ):
            yield f"the run {name} (outcome, answer or steps) is not what entry {entry.seq} of the audit log was made of"
    for span, texts in pruned.items():
        if of_set(texts) != span.sha256:
            yield f"the runs {span.from_seq} to {span.to_seq} (outcome or answer) are not those that entry {span.entry} of the audit log pruned"
    yield from (
        f"the run {name} is gone: entry {entry.seq} of the audit log ended it"
        for name, entry in missing.items()
    )


def _unfinished(reader: LedgerSnapshot) -> Iterator[str]:
    for name, result, body in reader.rows("SELECT id, result, body FROM run WHERE seq IS NULL"):
        if result is not None or fields_of(body).get("outcome") is not None:
            yield f"the run {name} has an outcome, and never ended"


def _tasks(reader: LedgerSnapshot) -> Iterator[str]:
    sql = "SELECT id, task_key, name, agent, parent, schedule_id, body FROM task"
    for name, key, *own, body in reader.rows(sql):
        try:
            task = from_text(Task, body)
        except Unavailable as error:
            yield f"the task {name}: {error}"
            continue
        if (task.id, task.key) != (name, key):
            yield f"the task {name}: what it asks for is not what its key was made of"
        elif (task.name, task.agent, task.parent, task.schedule_id) != tuple(own):
            yield f"the task {name}: its columns are not what its record says"
    lost = (
        "SELECT run.id, run.task_id FROM run LEFT JOIN task ON task.id = run.task_id "
        "WHERE task.id IS NULL OR task.task_key <> run.task_key"
    )
    for run_id, task_id in reader.rows(lost):
        yield f"the run {run_id}: its task {task_id} is gone, or asks for other work"
    other = (
        "SELECT run.id, run.task_id FROM run JOIN task ON task.id = run.task_id WHERE task.share <> run.share"
    )
    for run_id, task_id in reader.rows(other):
        yield f"the task {task_id} is hidden now, or shown, and was not when {run_id} ran"


def _flags(reader: LedgerSnapshot, log: AuditedDigests) -> Iterator[str]:
    there = Counter((run_id, reason) for run_id, reason in reader.rows("SELECT run_id, reason FROM flag"))
    for run_id, reason in (there - log.flags).elements():
        yield f"the flag on {run_id} ({reason[:80]}) has no audit entry"
    for run_id, reason in (log.flags - there).elements():
        yield f"the flag on {run_id} ({reason[:80]}) is gone"


def _spoken(reader: LedgerSnapshot, log: AuditedDigests) -> Iterator[str]:
    for table in _SPOKEN:
        for (name,) in reader.rows(f"SELECT id FROM {table}"):
            if f"{table}/{name}" not in log.records:
                yield f"the {table} {name} has no audit entry"


def _evidence(reader: LedgerSnapshot, log: AuditedDigests) -> Iterator[str]:
    missing = dict(log.evidence)
    for name, body in reader.rows("SELECT id, body FROM evidence"):
        item, entry = from_text(Evidence, body), missing.pop(name, None)
        if entry is None:
            yield f"the evidence {name} has no audit entry"
        elif {item.sha256, entry.detail.get("sha256")} != {
            digest([item.fingerprint, item.run_ids, item.task_ids])
        }:
            yield f"the evidence {name} is not the batch that entry {entry.seq} of the audit log sealed"
    yield from (
        f"the evidence {name} is gone: entry {entry.seq} sealed it" for name, entry in missing.items()
    )


def _decisions(reader: LedgerSnapshot, log: AuditedDigests) -> Iterator[str]:
    there: Counter[tuple[str, str, str]] = Counter()
    for evolution_id, candidate_id, body in reader.rows(
        "SELECT evolution_id, candidate_id, body FROM verdict"
    ):
        there[evolution_id, candidate_id, str(fields_of(body).get("decision"))] += 1
    for evolution_id, candidate_id, decision in there - log.verdicts:
        yield f"the verdict on {candidate_id} of {evolution_id} ({decision}) has no audit entry"
    for evolution_id, candidate_id, decision in log.verdicts - there:
        yield f"the verdict on {candidate_id} of {evolution_id} ({decision}) is gone or says something else"
    missing = dict(log.consents)
    for name, body in reader.rows("SELECT id, body FROM consent"):
        entry, principal = missing.pop(name, None), fields_of(body).get("principal")
        if entry is None:
            yield f"the consent {name} of {principal} has no audit entry"
        elif principal != entry.detail.get("principal"):
            yield f"the consent {name} is {principal}'s on record, and entry {entry.seq} says {entry.detail.get('principal')}"
    yield from (f"the consent {name} is gone: entry {entry.seq} gave it" for name, entry in missing.items())


def _evolutions(reader: LedgerSnapshot, log: AuditedDigests) -> Iterator[str]:
    missing = dict(log.evolutions)
    for name, state, body in reader.rows("SELECT id, state, body FROM evolution"):
        stored = fields_of(body).get("state")
        if name not in missing:
            yield f"the evolution {name} has no audit entry"
            continue
        said = missing.pop(name) or "mined"
        # Stages under way have no entries of their own: of one that has not ended the record alone says which.
        goes_on = stored in RUNNING_STATES and said not in _OVER
        if state != stored or (stored != said and not goes_on):
            yield f"the evolution {name} is {stored} on record ({state} in its column), and the audit log says {said}"
    yield from (f"the evolution {name} is gone" for name in missing)


def _sealed(reader: LedgerSnapshot, log: AuditedDigests) -> Iterator[str]:
    """Rows that an entry has a digest of."""
    for where, (seq, sha256) in log.records.items():
        table, _, name = where.partition("/")
        if table == "run":
            continue
        if not table.isidentifier():
            yield f"entry {seq} of the audit log speaks of no table: {where[:80]}"
            continue
        found = reader.rows(f"SELECT body FROM {table} WHERE id = ?", name)
        if not found:
            yield f"the {table} {name} is gone: entry {seq} of the audit log has its digest"
        elif _digest(found[0][0]) != sha256:
            yield f"the {table} {name} is not what entry {seq} of the audit log was made of"


def _digest(body: str | bytes) -> str:
    """ "" for what cannot be read."""
    try:
        return of_text(body)
    except Unavailable:
        return ""


def _sets(reader: LedgerSnapshot, log: AuditedDigests) -> Iterator[str]:
    """All of an evolution's records, as they were when it ended; what came after that has no digest."""
    for evolution_id, (seq, sets) in log.sets.items():
        for table, (count, sha256) in sets.items():
            texts = texts_of(reader.rows, table, evolution_id)
            if len(texts) < count:
                yield f"{count - len(texts)} of {count} rows in {table} of {evolution_id} are gone (entry {seq})"
            elif of_set(texts[:count]) != sha256:
                yield f"the rows in {table} of {evolution_id} are not those that entry {seq} of the audit log was made of"
            elif table == "candidate" and len(texts) > count and log.evolutions.get(evolution_id) in _OVER:
                yield f"{len(texts) - count} rows in candidate of {evolution_id} came after it had ended (entry {seq})"
    for name, evolution_id in reader.rows("SELECT id, evolution_id FROM attestation"):
        own = f"att-{evolution_id.removeprefix('evo-')}"
        if name not in (own, f"{own}-replay"):
            yield f"the attestation {name} of {evolution_id} is none that this program makes"


def _columns(reader: LedgerSnapshot) -> Iterator[str]:
    """What records are looked up by stands in columns of their own. One that cannot be read is told elsewhere."""
    for kind, shelf in SHELVES.items():
        names = ("id", *shelf.columns)
        rows = (
            reader.rows(f"SELECT body, {', '.join(names)} FROM {shelf.table}") if kind is not Sighting else ()
        )
        for body, *columns in rows:
            with suppress(Unavailable):
                record: Any = from_text(kind, body)
                own = [id_of(record), *(column_value(getattr(record, name)) for name in shelf.columns)]
                if columns != own:
                    yield f"the {shelf.table} {columns[0]}: its columns are not what its record says"


# --- blobs ------------------------------------------------------------------------------------


def blob_faults(reader: LedgerSnapshot, blobs: Path) -> Iterator[str]:
    """Blobs that are not what their names say, and those that rows name and that are not there."""
    store = BlobStore(blobs)
    there: set[str] = set()
    for name, fault in _looked_at(store, blobs):
        there.add(name)
        if fault:
            yield fault
    for where, name in _named(reader, pruned_so_far(reader.rows)):
        if name and name not in there:
            try:
                store.get(name)  # of a plug-in's store
            except NotFound:
                yield f"the blob {name} is missing: {where} names it"
            except Unavailable as error:
                yield f"{error}; {where} names it"


def _looked_at(store: BlobStore, blobs: Path) -> Iterator[tuple[str, str]]:
    """Each blob that is there, and what is wrong with it."""
    for info in store.everywhere():
        path = blobs / info.name[:2] / info.name[2:]
        try:
            with path.open("rb") as file:  # never all of it in memory
                right = hashlib.file_digest(file, "sha256").hexdigest() == info.name
            yield (
                info.name,
                "" if right else f"the blob {info.name} is damaged: its content does not match its name",
            )
        except FileNotFoundError:
            try:
                store.get(info.name)
                yield info.name, ""
            except NotFound:  # collected meanwhile
                continue
            except Unavailable as error:
                yield info.name, str(error)


def _named(reader: LedgerSnapshot, gone: PrunedTotals) -> Iterator[tuple[str, str]]:
    """Every blob that a row names and that has to be there, with the row."""
    idle = tasks_without_inputs(reader.rows, gone)
    for name, body in reader.rows("SELECT id, body FROM task"):
        inputs = () if name in idle else fields_of(body).get("inputs")
        yield from ((name, sha256) for sha256 in _digests(inputs))
    yield from _named_by_runs(reader, gone)
    like = "action LIKE '{\"blob\"%' OR observation LIKE '{\"blob\"%'"
    for run_id, *values in reader.rows(f"SELECT run_id, action, observation FROM step WHERE {like}"):
        for value in map(data_of, values):
            if is_reference(value):
                yield f"a step of {run_id}", value["blob"]
    for trial in reader.find(Trial):
        if trial.evolution_id not in gone.evolutions:
            yield trial.id, trial.steps_in or trial.steps_sha256
    for name, body in reader.rows("SELECT id, body FROM verdict"):
        yield name, str(fields_of(body).get("policy_sha256", ""))


def _digests(files: Json) -> Iterator[str]:
    """Of stored files; that a file is none is a fault of its record, which is told elsewhere."""
    found = files if isinstance(files, list) else ()
    yield from (str(file.get("sha256", "")) for file in found if isinstance(file, dict))


def _named_by_runs(reader: LedgerSnapshot, gone: PrunedTotals) -> Iterator[tuple[str, str]]:
    for seq, name, body in reader.rows("SELECT seq, id, body FROM run WHERE seq IS NOT NULL"):
        if gone.range_with(name, seq):
            continue
        run = fields_of(body)
        yield from ((name, sha256) for sha256 in _digests(run.get("outputs")))
        if is_reference(run.get("answer")):
            yield name, run["answer"]["blob"]
