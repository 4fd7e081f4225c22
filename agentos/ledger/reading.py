"""Reads the ledger, for the daemon and for commands that must start fast.

Connections cannot change anything, and in a file (``sqlite3``) no writer waits for them. Domain records come back.
"""

# ruff: noqa: S608 - names of tables and columns come from this package; values are bound

from __future__ import annotations

import json
import sqlite3
import weakref
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from agentos.domain import (
    Attestation,
    Candidate,
    Consent,
    Evidence,
    Evolution,
    Json,
    Probe,
    Question,
    Result,
    Review,
    Run,
    SafetyRate,
    Share,
    Sighting,
    Step,
    Task,
    TaskState,
    Trial,
    TrialLook,
    Verdict,
    dataclass,
)
from agentos.errors import ErrorKind, NotFound, UserError, to_type
from agentos.ledger import audit
from agentos.ledger.audit import AuditHead, Entry, HeadFile
from agentos.ledger.connect import open_to_read, refuse_other
from agentos.ledger.postgres.address import has_ledger
from agentos.ledger.rows.codec import TrialMemory, each_once, from_bundle, from_text, step_of, time_text
from agentos.ledger.rows.record_types import SHELVES, condition, matches, shelf_of
from agentos.ledger.rows.schema import LedgerConnection, unavailable

R = TypeVar("R")

NAMED = ("task", "run", *(shelf.table for shelf in SHELVES.values() if shelf.table != "sighting"))
_SIGHTINGS_MAX = 100_000  # looked through for those of a failure class: 0.1 s
_ALIKE = 32  # sightings of one fingerprint: evidence needs fewer
_SEEN_BY = {"question": "run answer", "proposal": "memory list"}  # not by the list of a noun of that name
_BOUND_MAX = 10_000  # values in one statement: SQLite takes 32,766
_DONE_TASKS = 500  # that are remembered, 5 kB each
_STEP = "run_id, position, node, action, observation, fault, started_at, duration_ms"
_ENTRY = "seq, at, event, subject, detail, previous, hash"


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task and where it stands."""

    task: Task
    share: Share
    state: TaskState


@dataclass(frozen=True, slots=True)
class Flag:
    """A user's word that a run was bad. ``seq`` is its place among all flags."""

    seq: int
    run_id: str
    reason: str
    flagged_at: datetime


@dataclass(frozen=True, slots=True)
class EvolutionRecords:
    """All that belongs to one evolution, each part oldest first."""

    evolution: Evolution
    evidence: Evidence | None
    candidates: tuple[Candidate, ...]
    trials: tuple[Trial, ...]
    verdicts: tuple[Verdict, ...]
    consents: tuple[Consent, ...]
    attestation: Attestation | None
    rates: tuple[SafetyRate, ...] = ()
    reviews: tuple[Review, ...] = ()
    probes: tuple[Probe, ...] = ()


def _close_all(connections: deque[LedgerConnection]) -> None:
    while connections:
        connections.pop().close()


class Reader:
    """Queries on the ledger at ``path``. Safe from any thread.

    Raises NotFound when there is none, UserError when it is of another release, Unavailable when damaged or away.
    """

    def __init__(self, path: Path) -> None:
        self.path = path  # the home is its folder, also where the rows lie in a database
        self._idle: deque[LedgerConnection] = deque()
        # A connection is in a cycle with its own cache: one that is dropped keeps its files open for long.
        weakref.finalize(self, _close_all, self._idle)
        self._trials = TrialMemory()
        self._done: dict[str, Task] = {}
        self._sightings: dict[str | bytes, Sighting] = {}  # by their texts, those that triage read last
        if not has_ledger(path):
            begin = to_type("agentos init")
            raise NotFound(f"there is no ledger at {path}: type ", begin, " first, or name it by --home")
        with self._connection() as connection:
            refuse_other(path, connection)

    def close(self) -> None:
        """Close what is idle; the reader may still be used."""
        _close_all(self._idle)

    @contextmanager
    def _connection(self) -> Iterator[LedgerConnection]:
        connection = self._take()
        try:
            yield connection
        except sqlite3.DatabaseError as error:
            raise unavailable(self.path, error) from error
        finally:
            self._idle.append(connection)

    def _take(self) -> LedgerConnection:
        try:
            return self._idle.pop() if self._idle else open_to_read(self.path)
        except IndexError:  # another thread was faster
            return self._take()
        except sqlite3.DatabaseError as error:
            raise unavailable(self.path, error) from error

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with self._connection() as connection:
            return connection.execute(sql, values).fetchall()

    # --- tasks and runs -----------------------------------------------------------------------

    def task(self, id: str) -> Task:
        """The task; raises NotFound. One that is done stays as it is, and is not read again."""
        if (known := self._done.get(id)) is not None:
            return known
        view = self.task_view(id)
        if view.state is TaskState.DONE:
            self._done = {} if len(self._done) >= _DONE_TASKS else self._done
            self._done[id] = view.task
        return view.task

    def task_view(self, id: str) -> TaskView:
        """The task with its state; raises NotFound."""
        return _only(self._tasks("WHERE id = ?", id), f"there is no task {id}")

    def tasks(self, state: TaskState | None = None, limit: int = -1) -> Sequence[TaskView]:
        """Tasks in the order they were added, in one state if given; the newest ``limit`` of them."""
        where, values = ("WHERE state = ?", (state.value,)) if state else ("", ())
        return self._tasks(f"{where} ORDER BY no DESC LIMIT {limit:d}", *values)[::-1]

    def queued(self, limit: int) -> Sequence[str]:
        """Ids of the tasks that wait, of the longest waiting first; no task is read for it."""
        sql = f"SELECT id FROM task WHERE state = ? ORDER BY no LIMIT {limit:d}"
        return [str(name) for (name,) in self._rows(sql, TaskState.QUEUED.value)]

    def states(self, ids: Collection[str]) -> Mapping[str, TaskState]:
        """Where each of these tasks stands, in the order of ``ids``; no task is read for it."""
        names: list[str] = [*ids]
        found: dict[str, TaskState] = {}
        for first in range(0, len(names), _BOUND_MAX):
            some = names[first : first + _BOUND_MAX]
            sql = f"SELECT id, state FROM task WHERE id IN ({', '.join('?' * len(some))})"
            found |= {str(name): TaskState(state) for name, state in self._rows(sql, *some)}
        return {name: found[name] for name in names if name in found}

    def tasks_named(self, name: str) -> Sequence[Task]:
        """Tasks of this name in the order they were added."""
        return [view.task for view in self._tasks("WHERE name = ? ORDER BY no", name)]

    def _tasks(self, rest: str, *values: object) -> list[TaskView]:
        rows = self._rows(f"SELECT body, share, state FROM task {rest}", *values)
        return [TaskView(from_text(Task, body), Share(share), TaskState(at)) for body, share, at in rows]

    def run(self, id: str) -> Run:
        """The run; raises NotFound."""
        return _only(self._runs("WHERE id = ?", id), f"there is no run {id}")

    def has_run(self, id: str) -> bool:
        """Is there such a run?"""
        return bool(self._rows("SELECT 1 FROM run WHERE id = ?", id))

    def runs(
        self, task_id: str | None = None, result: Result | None = None, limit: int = -1
    ) -> Sequence[Run]:
        """Runs, newest start first, open ones included; of one task or with one result if given."""
        clauses = {"task_id": task_id, "result": result.value if result else None}
        given = {column: value for column, value in clauses.items() if value is not None}
        where = "WHERE " + " AND ".join(f"{column} = ?" for column in given) if given else ""
        return self._runs(f"{where} ORDER BY no DESC LIMIT {limit:d}", *given.values())

    def arrived(self, task_id: str = "") -> int:
        """The place of the task in the order in which tasks came in; of the newest without an id; 0 for none."""
        sql = f"SELECT max(no) FROM task{' WHERE id = ?' if task_id else ''}"
        return int(self._rows(sql, *filter(None, [task_id]))[0][0] or 0)

    def runs_after(self, cursor: int, limit: int) -> Sequence[tuple[int, Run]]:
        """Finished runs in the order they finished, each with its cursor position."""
        rows = self._rows("SELECT seq, body FROM run WHERE seq > ? ORDER BY seq LIMIT ?", cursor, limit)
        return [(int(seq), from_text(Run, body)) for seq, body in rows]

    def runs_of(self, task_key: str, limit: int) -> Sequence[Run]:
        """Finished runs of equal work, newest first."""
        rest = f"WHERE task_key = ? AND seq IS NOT NULL ORDER BY seq DESC LIMIT {limit:d}"
        return self._runs(rest, task_key)

    def runs_using(self, resource: str, limit: int, *, hidden: bool = False) -> Iterator[Run]:
        """Finished runs that used the resource, newest first, at most one for each task key; of these the ``hidden`` ones.

        One that is not asked for is not made a record of.
        """
        latest = "SELECT max(seq) FROM run_resource WHERE resource = ? GROUP BY task_key"
        sql = f"SELECT share, body FROM run WHERE seq IN ({latest}) ORDER BY seq DESC LIMIT {limit:d}"
        if hidden:
            sql = f"SELECT share, body FROM ({sql}) AS newest WHERE share = '{Share.HOLD_OUT.value}'"
        return (from_text(Run, body) for _, body in self._rows(sql, resource))

    def recent_runs(self, resource: str, limit: int, before: datetime | None = None) -> Sequence[Run]:
        """Runs that used the resource and finished (``before`` then), newest first, also several of equal work."""
        end = time_text(before) if before else "~"  # beyond all times
        return self._runs(
            "JOIN run_resource AS used ON used.seq = run.seq WHERE used.resource = ? AND run.finished_at < ? "
            f"ORDER BY used.seq DESC LIMIT {limit:d}",
            resource,
            end,
        )

    def _runs(self, rest: str, *values: object) -> list[Run]:
        return [from_text(Run, body) for (body,) in self._rows(f"SELECT run.body FROM run {rest}", *values)]

    def is_pruned(self, run: Run) -> bool:
        """Whether retention let its steps and files go."""
        ((seq,),) = self._rows("SELECT seq FROM run WHERE id = ?", run.id) or ((None,),)
        return seq is not None and audit.pruned_so_far(self._rows).range_with(run.id, seq) is not None

    def steps(self, run_id: str, after: int = -1) -> Sequence[Step]:
        """The trajectory in order; only steps with an index beyond ``after``, to follow a run."""
        return [
            step_of(row)
            for row in self._rows(
                f"SELECT {_STEP} FROM step WHERE run_id = ? AND position > ? ORDER BY position", run_id, after
            )
        ]

    def flags(self, run_id: str) -> Sequence[Flag]:
        """What users said of the run, oldest first."""
        rows = self._rows(
            "SELECT seq, run_id, reason, flagged_at FROM flag WHERE run_id = ? ORDER BY seq", run_id
        )
        return [Flag(int(seq), run, reason, datetime.fromisoformat(at)) for seq, run, reason, at in rows]

    # --- people -------------------------------------------------------------------------------

    def handed_over(self, task_id: str) -> Sequence[TaskView]:
        """The tasks that runs of this one handed over, and those that runs of them did, oldest first."""
        found: list[TaskView] = []
        for view in self._tasks("WHERE parent = ? ORDER BY no", task_id):
            found += [view, *self.handed_over(view.task.id)]
        return found

    def answers(self, task_id: str) -> Mapping[str, str]:
        """What people answered to the questions of the task's runs, by question."""
        found = self.find(Question, task_id=task_id)
        return {question.text: question.answer for question in found if question.answer is not None}

    def root_of(self, task: Task) -> Task:
        """The task that people gave, of which this one is a part."""
        while task.parent:
            task = self.task(task.parent)
        return task

    def open_questions(self, root_id: str | None = None) -> Sequence[Question]:
        """What waiting tasks wait for, oldest first; of one task that people gave, if named."""
        sql = "SELECT question.body FROM question JOIN task ON task.id = root_id WHERE answer IS NULL"
        rest, values = (" AND root_id = ?", (root_id,)) if root_id else ("", ())
        rows = self._rows(f"{sql} AND task.state = ?{rest} ORDER BY seq", TaskState.WAITING.value, *values)
        return [from_text(Question, body) for (body,) in rows]

    # --- records ------------------------------------------------------------------------------

    def get(self, kind: type[R], id: str) -> R:
        """The record; raises NotFound."""
        rows = self._rows(f"SELECT body FROM {shelf_of(kind).table} WHERE id = ?", id)
        return _only([from_text(kind, body) for (body,) in rows], f"there is no {kind.__name__.lower()} {id}")

    def find(self, kind: type[R], **equal: object) -> Sequence[R]:
        """Records whose top-level fields equal these, oldest first; a frozenset stands for any of its values."""
        shelf = shelf_of(kind)
        if kind is Trial and "evolution_id" in equal:
            trials: Sequence[Any] = self._trials.of(self._rows, str(equal["evolution_id"]))
            return [*trials] if len(equal) == 1 else [trial for trial in trials if matches(trial, equal)]
        columns = [name for name in equal if name in ("id", *shelf.columns)]
        where, values = condition({name: equal[name] for name in columns})
        rows = self._rows(f"SELECT body FROM {shelf.table} {where} ORDER BY seq", *values)
        rest = {name: value for name, value in equal.items() if name not in columns}
        found = [from_text(kind, body) for (body,) in rows]
        if kind is Trial:
            packs = self._rows("SELECT body FROM trial_pack ORDER BY seq")  # of evolutions that are over
            packed: list[Any] = [trial for (body,) in packs for trial in from_bundle(body)]
            found, rest = each_once([*packed, *found]), equal
        return [record for record in found if matches(record, rest)]

    def looks(self, fingerprint_id: str) -> Sequence[TrialLook]:
        """What trials of candidates for this failure were a look at, alike ones of an evolution once; oldest first."""
        newest = "(SELECT max(seq) FROM {0} WHERE evolution_id = evolution.id)".format
        sql = f"SELECT id, {newest('trial')}, {newest('trial_pack')} FROM evolution WHERE fingerprint_id = ? ORDER BY seq"
        rows = self._rows(sql, fingerprint_id)
        return [look for name, *at in rows for look in self._trials.looks(self._rows, name, at)]

    def newest(self, kind: type[R], limit: int, **equal: object) -> Sequence[R]:
        """The ``limit`` newest records with these columns, newest first; a frozenset as in ``find``."""
        return [from_text(kind, body) for (body,) in self._newest(kind, "body", limit, equal)]

    def newest_fields(
        self, kind: type, names: Sequence[str], limit: int, **equal: object
    ) -> Sequence[tuple[str, ...]]:
        """As ``newest``, these of their columns alone."""
        return self._newest(kind, ", ".join(names), limit, equal)

    def _newest(
        self, kind: type, names: str, limit: int, equal: Mapping[str, object]
    ) -> list[tuple[Any, ...]]:
        shelf = shelf_of(kind)
        if others := [name for name in equal if name not in shelf.columns]:
            raise TypeError(f"{shelf.table} is not looked up by {', '.join(others)}")
        where, values = condition(equal)
        sql = f"SELECT {names} FROM {shelf.table} {where} ORDER BY seq DESC LIMIT {limit:d}"
        return self._rows(sql, *values)

    def newest_sightings(self, classes: Collection[str], limit: int, closed: str = "") -> Sequence[Sighting]:
        """The ``limit`` sightings of these failure classes that were stored last, oldest first.

        With ``closed``, a fingerprint is left out whose newest sighting the cursor of that name and its id
        has reached. Of one fingerprint the newest ``_ALIKE`` are given.
        """
        sql = (  # the bodies last: to sort them by fingerprint takes longer than all else
            "SELECT body FROM sighting WHERE seq IN (SELECT seq FROM (SELECT seq, "
            "row_number() OVER (PARTITION BY fingerprint ORDER BY seq DESC) AS place FROM sighting "
            f"WHERE seq > (SELECT max(seq) - {_SIGHTINGS_MAX} FROM sighting) "
            "AND fingerprint NOT IN (SELECT substr(name, length(?1) + 1) FROM cursor "
            "WHERE ?1 <> '' AND name > ?1 AND name < ?1 || '~' AND position >= "
            "(SELECT max(seq) FROM sighting WHERE fingerprint = substr(name, length(?1) + 1)))) AS found "
            f"WHERE place <= {_ALIKE}) AND json_extract(body, '$.fingerprint.klass') "
            f"IN ({', '.join('?' * len(classes))}) ORDER BY seq DESC LIMIT {limit:d}"
        )
        known = self._sightings
        rows = self._rows(sql, closed, *classes)
        found = {body: known.get(body) or from_text(Sighting, body) for (body,) in rows}
        self._sightings = found
        return [*found.values()][::-1]

    def last_sighting(self) -> int:
        """The place of the sighting that was stored last; 0 without any."""
        return int(self._rows("SELECT coalesce(max(seq), 0) FROM sighting")[0][0])

    def story(self, evolution_id: str) -> EvolutionRecords:
        """Everything about one evolution; raises NotFound."""
        evolution = self.get(Evolution, evolution_id)
        mine = {"evolution_id": evolution_id}
        evidence = self.find(Evidence, id=evolution.evidence_id)
        attestations = self.find(Attestation, **mine)
        return EvolutionRecords(
            evolution,
            evidence[0] if evidence else None,
            tuple(self.find(Candidate, **mine)),
            tuple(self.find(Trial, **mine)),
            tuple(self.find(Verdict, **mine)),
            tuple(self.find(Consent, **mine)),
            attestations[-1] if attestations else None,
            tuple(self.find(SafetyRate, **mine)),
            tuple(self.find(Review, **mine)),
            tuple(self.find(Probe, **mine)),
        )

    # --- the rest -----------------------------------------------------------------------------

    def resolve(self, kind: str, fragment: str) -> str:
        """The one id of ``kind`` (task, run, evolution, …) that starts or ends with ``fragment``.

        The prefix (``run-``) may be left out. What begins a schedule's id is the schedule's, though its copies' ids
        begin with it too. Raises NotFound, or UserError when several match.
        """
        if kind not in NAMED:
            raise TypeError(f"{kind} has no ids")
        if rows := self._rows(f"SELECT id FROM {kind} WHERE id = ?", fragment):
            return str(rows[0][0])  # a whole id is looked up; for a part of one all are looked through
        matches = (
            "id = ?1 OR substr(id, 1, length(?1)) = ?1 OR substr(id, instr(id, '-') + 1, length(?1)) = ?1 "
            "OR (length(id) > length(?1) AND substr(id, length(id) - length(?1) + 1) = ?1)"
        )
        if kind == "task":
            its = f"SELECT id FROM task WHERE {matches}"
            matches = f"({matches}) AND (schedule_id = '' OR id = ?1 OR schedule_id NOT IN ({its}))"
        sql = f"SELECT id FROM {kind} WHERE ?1 <> '' AND ({matches}) ORDER BY id <> ?1, id LIMIT 6"
        found = [row[0] for row in self._rows(sql, fragment)]
        if not found:
            other, seen = self._other(kind, fragment), _SEEN_BY.get(kind, f"{kind} list")
            told = f"there is no {kind} {fragment!r}: {other}type "
            raise NotFound(told, to_type(f"agentos {seen}"), " to see them")
        if len(found) > 1 and found[0] != fragment:
            some = ", ".join(found[:5]) + (", …" if len(found) > 5 else "")
            told = f"{fragment!r} could be any of {some}: give more letters of the {kind}'s id"
            raise UserError(told, kind=ErrorKind.AMBIGUOUS)
        return str(found[0])

    def _other(self, kind: str, name: str) -> str:
        """What bears the name instead, as the beginning of a sentence; "" where nothing does."""
        if kind == "task" and (rows := self._rows("SELECT task_id FROM run WHERE id = ?", name)):
            return f"that is a run of {rows[0][0]}; "
        bearing = (other for other in NAMED if self._rows(f"SELECT 1 FROM {other} WHERE id = ?", name))
        # not ``kind``: that was looked for
        return next((f"that is the id of a {other}; " for other in bearing), "")

    def get_kv(self, key: str, default: Json = None) -> Json:
        """The JSON value under ``key``."""
        rows = self._rows("SELECT value FROM memo WHERE key = ?", key)
        return json.loads(rows[0][0]) if rows else default

    def read(self, name: str) -> int:
        """The position of a cursor, 0 at first."""
        return int((self._rows("SELECT position FROM cursor WHERE name = ?", name) or [(0,)])[0][0])

    def entries(self, limit: int = -1, subject: str | None = None) -> Sequence[Entry]:
        """The newest audit entries, oldest of them first; only those on ``subject`` if given."""
        where, values = ("WHERE subject = ?", (subject,)) if subject else ("", ())
        sql = f"SELECT {_ENTRY} FROM audit {where} ORDER BY seq DESC LIMIT {limit:d}"
        return [Entry.of(row) for row in self._rows(sql, *values)][::-1]

    def name(self) -> str:
        """Of this ledger, wherever it is moved: the hash of its first audit entry; "" before there is any."""
        rows = self._rows("SELECT hash FROM audit ORDER BY seq LIMIT 1")
        return "".join(audit.in_digits(first) for (first,) in rows)

    def count_entries(self, event: str) -> int:
        """How many of the newest 10,000 audit entries are of this event."""
        newest = "seq > (SELECT coalesce(max(seq), 0) FROM audit) - 10000"
        ((count,),) = self._rows(f"SELECT count(*) FROM audit WHERE {newest} AND event = ?", event)
        return int(count)

    def entries_after(self, seq: int, limit: int) -> Sequence[Entry]:
        """Audit entries beyond ``seq``, oldest first."""
        rows = self._rows(f"SELECT {_ENTRY} FROM audit WHERE seq > ? ORDER BY seq LIMIT ?", seq, limit)
        return [Entry.of(row) for row in rows]

    def verify(self, noted: AuditHead | None = None, newest_only: bool = False) -> list[str]:
        """What is wrong with the audit log, one sentence each; empty when it is whole.

        ``noted`` is a head that was kept elsewhere. ``newest_only``: what the newest entries follow is taken as it is.
        """
        kept = HeadFile(self.path.with_name("audit.head")).read()  # first: it is never ahead of the rows
        with self._connection() as connection:
            after = audit.before_newest(connection, kept) if newest_only else AuditHead()
            rows = connection.execute(f"SELECT {_ENTRY} FROM audit {audit.beyond(after)} ORDER BY seq")
            given = [(noted, "the head you gave")] if noted else []
            return audit.faults((Entry.of(row) for row in rows), kept, given, after)

    def head(self) -> AuditHead:
        """The newest audit entry: note it elsewhere to detect a rewritten log."""
        with self._connection() as connection:
            return audit.newest(connection)


def _only(found: list[R], missing: str) -> R:
    if not found:
        raise NotFound(missing)
    return found[0]
