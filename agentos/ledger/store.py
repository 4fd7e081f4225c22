"""The ledger: all writes, each one transaction that is on disk when the call returns.

``Ledger`` implements the ports Records, Journal, Cursor and Audit; its ``blobs`` implement Blobs.
Reads come from ``Reader``. One process may use a ledger from many threads and many processes may
use one file: writers queue up on a lock within the process and on SQLite's between processes.
"""

# ruff: noqa: S608 - names of tables and columns come from this package; values are bound

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentos.domain import (
    Evolution,
    Json,
    MemoryProposal,
    Outcome,
    ProposalState,
    Question,
    Result,
    Run,
    RunEnd,
    Share,
    Step,
    Task,
    TaskState,
    is_reference,
)
from agentos.errors import Conflict, ErrorKind, NotFound
from agentos.ledger.audit import PRUNED, AuditHead, HeadFile, chained, newest
from agentos.ledger.blobs import BlobStore
from agentos.ledger.connect import open_ledger
from agentos.ledger.reading import Reader
from agentos.ledger.retention import PruneBatch, spoken_of
from agentos.ledger.rows.codec import from_text, kept, pack, plain, time_text, to_text
from agentos.ledger.rows.record_types import (
    RECORDS,
    body_of,
    first_value,
    insert,
    insert_all,
    of_records,
    of_run,
    put,
    run_row,
    shelf_of,
    task_row,
    transaction,
    update,
    upsert,
)
from agentos.ledger.rows.schema import LedgerConnection, LedgerCursor, unavailable
from agentos.ports import Noted

# What a task becomes by the end of a run; `infra` leaves it as it is, all else makes it done.
_NOTHING = RunEnd()
_STATE_AFTER = {Result.CANCELLED: TaskState.CANCELLED, Result.WAITING: TaskState.WAITING}


class Ledger(Reader):
    """The ledger at ``path``, made or migrated when needed; blobs lie in ``blobs/`` beside it."""

    def __init__(self, path: Path) -> None:
        self._writer = open_ledger(path)
        self._lock = threading.Lock()
        super().__init__(path)
        self.blobs = BlobStore(path.with_name("blobs"))
        self._head_file = HeadFile(path.with_name("audit.head"))
        self._noted: tuple[AuditHead, AuditHead] | None = None  # before this transaction's entry, and after
        with self._lock:
            self._publish(AuditHead(), None)

    def close(self) -> None:
        """Close all connections."""
        super().close()
        with self._lock:
            self._writer.close()

    @contextmanager
    def _writing(self) -> Iterator[LedgerConnection]:
        # The lock keeps threads of one process off SQLite's own, which waits by sleeping.
        with self._lock:
            self._noted = None
            try:
                with transaction(self._writer):
                    yield self._writer
            except sqlite3.IntegrityError:
                raise
            except sqlite3.Error as error:
                raise unavailable(self.path, error) from error
            if self._noted:
                self._publish(*self._noted)

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        # By the connection that writes, where nobody does: it has what it wrote in its cache, and a commit empties
        # that of every other. A connection of a reader never waits for a writer.
        if not self._lock.acquire(blocking=False):
            return super()._rows(sql, *values)
        try:
            return self._writer.execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise unavailable(self.path, error) from error
        finally:
            self._lock.release()

    # --- tasks --------------------------------------------------------------------------------

    def add_task(self, task: Task, share: Share, state: TaskState = TaskState.QUEUED) -> None:
        """Store a task; doing so again changes nothing. Conflict when the id is another task's."""
        self.add_tasks([(task, share, state)])

    def add_tasks(self, tasks: Sequence[tuple[Task, Share, TaskState]]) -> None:
        """As ``add_task``, all of them or none."""
        rows = [task_row(*item) for item in tasks]
        with self._writing() as connection:
            for (task, _, _), row in zip(tasks, rows, strict=True):
                old = first_value(connection, "SELECT body FROM task WHERE id = ?", row["id"])
                if old is None:
                    insert(connection, "task", row)
                elif from_text(Task, old) != task:  # an earlier release wrote fewer fields
                    raise Conflict(f"there is another task with the id {row['id']}", kind=ErrorKind.TAKEN)

    def set_task_state(self, id: str, from_states: Collection[TaskState], to: TaskState) -> bool:
        """Move the task to ``to`` if it stands in one of ``from_states``; whether it did."""
        with self._writing() as connection:
            return _move(connection, id, from_states, to)

    # --- runs ---------------------------------------------------------------------------------

    def begin_run(self, run: Run) -> None:
        """Store an open run, its task becoming ``running``; doing so again changes nothing.

        Raises NotFound without its task, and Conflict when the task is done or cancelled or the
        attempt was begun under another id.
        """
        with self._writing() as connection:
            if first_value(connection, "SELECT no FROM run WHERE id = ?", run.id):
                return
            state = first_value(connection, "SELECT state FROM task WHERE id = ?", run.task_id)
            if state is None:
                raise NotFound(f"there is no task {run.task_id}")
            if state not in (TaskState.QUEUED, TaskState.RUNNING):
                told = f"the task {run.task_id} is {state}: it takes no further run"
                raise Conflict(told, kind=ErrorKind.OVER)
            _move(connection, run.task_id, (TaskState.QUEUED,), TaskState.RUNNING)
            try:
                insert(connection, "run", run_row(run, to_text(run)))
            except sqlite3.IntegrityError:
                told = f"attempt {run.attempt} at the task {run.task_id} was begun by another run"
                raise Conflict(told, kind=ErrorKind.TAKEN) from None

    def append_step(self, step: Step) -> None:
        """As ``append_steps``, of one."""
        self.append_steps((step,))

    def append_steps(self, steps: Sequence[Step]) -> None:
        """Store steps of open runs, all or none; big values go to blobs. The same step again changes nothing.

        Raises Conflict when a run has another step with this index, or is over: its audit entry has a digest of
        its steps.
        """
        rows = [self._step_row(step) for step in steps]
        with self._writing() as connection:
            _append(connection, rows)

    def _step_row(self, step: Step) -> dict[str, Any]:
        return {
            "run_id": step.run_id,
            "position": step.index,
            "node": step.node,
            "action": self._kept(step.action),
            "observation": self._kept(step.observation),
            "fault": to_text(step.fault) if step.fault else None,
            "started_at": time_text(step.started_at),
            "duration_ms": step.duration_ms,
        }

    def _kept(self, value: Json) -> str | bytes:
        """As it stands in a step. The name of a blob stays legible: it is searched for."""
        small, text = self.blobs.shrunk(value)
        return text if is_reference(small) else kept(text)

    def finish_run(
        self,
        run_id: str,
        outcome: Outcome,
        end: RunEnd = _NOTHING,
        *,
        records: Sequence[object] = (),
        steps: Sequence[Step] = (),
    ) -> int:
        """End a run: outcome, cursor position, task state and audit entry in one transaction, and ``records``.

        So are ``steps`` of it that were not stored yet.

        The task becomes ``done`` (``cancelled`` or ``waiting`` when the outcome is); an ``infra``
        outcome leaves it as it is, because the caller decides whether there is another attempt. A run that has
        ended stays as it is. Returns its cursor position. Raises NotFound, and Conflict as ``append_steps``.
        """
        answer = self.blobs.shrink(end.answer)
        rows = [self._step_row(step) for step in steps]
        with self._writing() as connection:
            found = connection.execute("SELECT seq, body FROM run WHERE id = ?", (run_id,)).fetchone()
            if found is None:
                raise NotFound(f"there is no run {run_id}")
            seq, body = found
            if seq is not None:
                return int(seq)
            _append(connection, rows)
            run = replace(
                from_text(Run, body),
                finished_at=datetime.now(UTC),
                outcome=outcome,
                answer=answer,
                outputs=tuple(end.outputs),
                resources=tuple(sorted(set(end.resources))),
                host=end.host,
            )
            seq = _next_seq(connection)
            text = to_text(run)
            row = run_row(run, text)
            ended = {name: row[name] for name in ("result", "finished_at", "body")}
            update(connection, "run", run_id, ended | {"seq": seq})
            _note_use(connection, run, seq)
            put(connection, *records)
            if outcome.result is not Result.INFRA:
                after = _STATE_AFTER.get(outcome.result, TaskState.DONE)
                _move(connection, run.task_id, (TaskState.QUEUED, TaskState.RUNNING), after)
            self._note("run.finished", run_id, self._about(run, text))
        return seq

    def add_past(self, task: Task, run: Run, steps: Sequence[Step], event: str = "run.imported") -> bool:
        """Store a run that is over and was not made by the daemon, with its task: all or nothing, audited.

        False when a run of this id is there: nothing is changed then. Raises Conflict when its task is there.
        """
        outcome = run.outcome
        if outcome is None:
            raise ValueError(f"{run.id} is not over")
        if self.has_run(run.id):
            return False
        # blobs first: a row never names a file that is not there
        rows = [self._step_row(step) for step in steps]
        run = replace(run, answer=self.blobs.shrink(run.answer))
        with self._writing() as connection:
            if first_value(connection, "SELECT no FROM run WHERE id = ?", run.id):
                return False
            if first_value(connection, "SELECT no FROM task WHERE id = ?", task.id):
                told = f"there is a task with the id {task.id} already: {run.id} is a past run, and brings its own task"
                raise Conflict(told, kind=ErrorKind.TAKEN)
            seq = _next_seq(connection)
            insert(connection, "task", task_row(task, run.share, TaskState.DONE))
            text = to_text(run)
            insert(connection, "run", run_row(run, text) | {"seq": seq})
            for row in rows:
                insert(connection, "step", row)
            _note_use(connection, run, seq)
            self._note(event, run.id, self._about(run, text))
        return True

    def flag(self, run_id: str, reason: str) -> None:
        """Record a user's word that a finished run was bad. Raises NotFound, and Conflict while it is under way."""
        if self.run(run_id).outcome is None:
            told = f"{run_id} is still under way; `agentos run tail {run_id}` follows it"
            raise Conflict(told, kind=ErrorKind.AT_WORK)
        with self._writing() as connection:
            row = {"run_id": run_id, "reason": reason, "flagged_at": time_text(datetime.now(UTC))}
            insert(connection, "flag", row)
            self._note("run.flagged", run_id, {"reason": reason})

    # --- people -------------------------------------------------------------------------------

    def keep(self, record: Question | MemoryProposal) -> None:
        """Store what a run asks or proposes; one that is there already stays as it is."""
        table = shelf_of(type(record)).table
        with self._writing() as connection:
            if not first_value(connection, f"SELECT seq FROM {table} WHERE id = ?", record.id):
                put(connection, record)

    def answer(self, question_id: str, text: str) -> Question:
        """Answer a question; its task is queued again once no other question of it is open.

        Raises NotFound, and Conflict when it is answered already or its task waits for nothing.
        """
        with self._writing() as connection:
            question = from_text(Question, body_of(connection, "question", question_id))
            if question.answer is not None:
                told = f"the question {question.id} was answered already: {question.answer[:200]}"
                raise Conflict(told, kind=ErrorKind.DECIDED)
            question = replace(question, answer=text, answered_at=datetime.now(UTC))
            state = first_value(connection, "SELECT state FROM task WHERE id = ?", question.root_id)
            if state != TaskState.WAITING:
                told = f"the task {question.root_id} is {state}: it waits for no answer"
                raise Conflict(told, kind=ErrorKind.OVER)
            said = {"task": question.root_id, "answer": text}
            self._note("question.answered", question.id, said, (question,))
            still = "SELECT seq FROM question WHERE root_id = ? AND answer IS NULL"
            if not first_value(connection, still, question.root_id):
                _move(connection, question.root_id, (TaskState.WAITING,), TaskState.QUEUED)
        return question

    def decide(self, proposal: MemoryProposal) -> None:
        """Store what became of a proposal. Raises NotFound, and Conflict when that is settled."""
        with self._writing() as connection:
            old = from_text(MemoryProposal, body_of(connection, "proposal", proposal.id))
            if old.state is not ProposalState.OPEN:
                raise Conflict(f"the proposal {old.id} is {old.state.value} already", kind=ErrorKind.DECIDED)
            detail = {"state": proposal.state, "resource": proposal.resource, "reason": proposal.reason}
            self._note("memory.decided", proposal.id, detail, (proposal,))

    # --- records ------------------------------------------------------------------------------

    def put(self, *records: object) -> None:
        """Insert, or replace the record with the same id; all of them or none. Append-only types refuse to change.

        The same record again changes nothing; another one on an append-only shelf is a Conflict.
        """
        with self._writing() as connection:
            put(connection, *records)

    def pack_trials(self, ended_before: datetime) -> int:
        """Put the trials of each evolution that had ended by then into one row; how many evolutions.

        One that ended a moment ago may be taken up again by a daemon that was killed: leave it an hour.
        """
        over = [
            item
            for (name,) in self._rows("SELECT DISTINCT evolution_id FROM trial")
            for item in self.find(Evolution, id=name)
            if item.ended_at is not None and item.ended_at < ended_before
        ]
        for evolution in over:
            with self._writing() as connection:
                pack(connection, evolution.id)
        return len(over)

    def prune(self, batch: PruneBatch) -> None:
        """Let the batch's runs go but for their rows, with the entry that stands for their digests; one transaction.

        Raises Conflict when another process was at these runs first, or a person spoke of one meanwhile.
        """
        row = {"from_seq": batch.from_seq, "to_seq": batch.to_seq, "pruned_at": time_text(datetime.now(UTC))}
        with self._writing() as connection:
            if int(first_value(connection, "SELECT max(to_seq) FROM pruned") or 0) >= batch.from_seq:
                raise Conflict("runs are being pruned by another process already", kind=ErrorKind.AT_WORK)
            if name := spoken_of(self._in_transaction, batch.runs):
                told = f"{name} may not go: a person spoke of it meanwhile; prune again"
                raise Conflict(told, kind=ErrorKind.STALE)
            insert(connection, "pruned", row)
            connection.executemany("DELETE FROM step WHERE run_id = ?", ((name,) for name in batch.runs))
            # Nobody looks for them by what they used: guards are replayed from runs that have all they had.
            kept_too = ", ".join("?" * len(batch.kept))
            connection.execute(
                "DELETE FROM run_resource WHERE seq BETWEEN ? AND ? "
                f"AND seq NOT IN (SELECT seq FROM run WHERE id IN ({kept_too}))",
                (batch.from_seq, batch.to_seq, *batch.kept),
            )
            self._note(PRUNED, f"runs {batch.from_seq} to {batch.to_seq}", batch.detail)

    def advance(
        self,
        name: str,
        to: int,
        records: Sequence[object],
        *,
        after: int | None = None,
        note: Noted = (),
    ) -> None:
        """Store ``records``, the new position and the audit entry in one transaction: all or nothing.

        Raises Conflict when the cursor is beyond ``to`` already, or not at ``after`` if given.
        """
        with self._writing() as connection:
            at = first_value(connection, "SELECT position FROM cursor WHERE name = ?", name) or 0
            if at > to or after not in (None, at):
                told = f"the cursor {name} is at {at} before it moves to {to}: another reader was faster"
                raise Conflict(told, kind=ErrorKind.STALE)
            upsert(connection, "cursor", ("name",), {"name": name, "position": to})
            if note:
                self._note(*note, records)
            else:
                put(connection, *records)

    def set_kv(self, key: str, value: Json) -> None:
        """Remember a small JSON value under ``key``."""
        with self._writing() as connection:
            upsert(connection, "memo", ("key",), {"key": key, "value": to_text(value)})

    # --- audit --------------------------------------------------------------------------------

    def note(self, event: str, subject: str, detail: Json, records: Sequence[object] = ()) -> None:
        """Store the records and append one entry with their digests; durable when the call returns."""
        with self._writing():
            self._note(event, subject, detail, records)

    def _note(self, event: str, subject: str, detail: Json, records: Sequence[object] = ()) -> None:
        """Within a transaction, store the records and append the entry that speaks of them."""
        if records:
            texts = put(self._writer, *records)
            detail = {**detail, **of_records(self._in_transaction, records, texts)}
        before = newest(self._writer)
        text = json.dumps(detail, sort_keys=True)
        entry = chained(before, time_text(datetime.now(UTC)), event, subject, text)
        insert(self._writer, "audit", entry.row())
        self._noted = (before, AuditHead(entry.seq, entry.hash))

    def _about(self, run: Run, text: str) -> Json:
        """What the entry of a run's end says: its result, and the digest of its ``text`` and its steps."""
        sha256 = of_run(self._in_transaction, run.id, text)
        result = run.outcome.result if run.outcome else None
        return {"result": result, "task": run.task_id, RECORDS: {f"run/{run.id}": sha256}}

    def _in_transaction(self, sql: str, *values: object) -> LedgerCursor:
        return self._writer.execute(sql, values)

    def _publish(self, before: AuditHead, head: AuditHead | None) -> None:
        try:
            self._head_file.publish(self._writer, before, head or newest(self._writer))
        except OSError as error:
            raise unavailable(self.path.with_name("audit.head"), error) from error
        except sqlite3.DatabaseError as error:
            raise unavailable(self.path, error) from error


def _move(connection: LedgerConnection, id: str, from_states: Collection[TaskState], to: TaskState) -> bool:
    states = [state.value for state in from_states]
    sql = f"UPDATE task SET state = ? WHERE id = ? AND state IN ({', '.join('?' * len(states))})"
    return connection.execute(sql, (to.value, id, *states)).rowcount == 1


def _append(connection: LedgerConnection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Steps of open runs, as rows."""
    there = "SELECT position, node, action FROM step WHERE run_id = ? AND position BETWEEN ? AND ?"
    for run_id in dict.fromkeys(row["run_id"] for row in rows):
        own = [row for row in rows if row["run_id"] == run_id]
        positions = [row["position"] for row in own]
        found = connection.execute(there, (run_id, min(positions), max(positions)))
        old = {position: (node, action) for position, node, action in found}
        new = []
        for row in own:
            known = old.get(row["position"])
            if known is None:
                old[row["position"]] = (row["node"], row["action"])
                new.append(row)
            elif (known[0], plain(known[1])) != (row["node"], plain(row["action"])):
                raise Conflict(f"the run {run_id} has another step {row['position']}", kind=ErrorKind.TAKEN)
        if new and first_value(connection, "SELECT result FROM run WHERE id = ?", run_id):
            raise Conflict(f"the run {run_id} is over: it takes no further step", kind=ErrorKind.OVER)
        if new:
            insert_all(connection, "step", new)


def _note_use(connection: LedgerConnection, run: Run, seq: int) -> None:
    for name in run.resources:
        insert(connection, "run_resource", {"resource": name, "task_key": run.task_key, "seq": seq})


def _next_seq(connection: LedgerConnection) -> int:
    # The transaction holds the write lock, so numbers are in the order of commits.
    return int(first_value(connection, "SELECT max(seq) FROM run") or 0) + 1


__all__ = ["Ledger"]
