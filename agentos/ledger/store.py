"""The ledger: all writes, each one transaction that is on disk when the call returns.

``Ledger`` implements the ports Records, Journal, Cursor and Audit; its ``blobs`` implement Blobs.
Reads come from ``Reader``. One process may use a ledger from many threads and many processes may
use one file: writers queue up on a lock within the process and on SQLite's between processes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, Table, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.exc import DBAPIError, IntegrityError

from agentos.domain import (
    Evolution,
    InputFile,
    Json,
    Outcome,
    Proposal,
    ProposalState,
    Question,
    Result,
    Run,
    Share,
    Step,
    Task,
    TaskState,
)
from agentos.errors import Conflict, NotFound
from agentos.ledger.audit import Head, HeadFile, chained
from agentos.ledger.blobs import BlobStore
from agentos.ledger.codec import from_text, plain, time_text, to_text
from agentos.ledger.connect import open_ledger
from agentos.ledger.digests import RECORDS, Rows, of_records, of_run
from agentos.ledger.packing import pack
from agentos.ledger.reading import Reader
from agentos.ledger.record_types import body_of, column_value, id_of, shelf_of
from agentos.ledger.schema import unavailable
from agentos.ledger.tables import TABLE_OF
from agentos.ports import Noted

TASK, RUN, STEP, FLAG = (TABLE_OF[name] for name in ("task", "run", "step", "flag"))
RUN_RESOURCE, AUDIT, CURSOR, MEMO = (TABLE_OF[name] for name in ("run_resource", "audit", "cursor", "memo"))
QUESTION, PROPOSAL = TABLE_OF["question"], TABLE_OF["proposal"]

# What a task becomes by the end of a run; `infra` leaves it as it is, all else makes it done.
_STATE_AFTER = {Result.CANCELLED: TaskState.CANCELLED, Result.WAITING: TaskState.WAITING}


class Ledger(Reader):
    """The ledger at ``path``, made or migrated when needed; blobs lie in ``blobs/`` beside it."""

    def __init__(self, path: Path) -> None:
        self._engine = open_ledger(path)
        super().__init__(path)
        self.blobs = BlobStore(path.with_name("blobs"))
        self._head_file = HeadFile(path.with_name("audit.head"))
        self._lock = threading.Lock()
        self._publish()

    def close(self) -> None:
        """Close all connections."""
        super().close()
        self._engine.dispose()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        # The lock keeps threads of one process off SQLite's own, which waits by sleeping.
        with self._lock:
            try:
                with self._engine.begin() as connection:
                    yield connection
            except IntegrityError:
                raise
            except DBAPIError as error:
                raise unavailable(self._path, error.orig or error) from error

    # --- tasks --------------------------------------------------------------------------------

    def add_task(self, task: Task, share: Share, state: TaskState = TaskState.QUEUED) -> None:
        """Store a task; doing so again changes nothing. Conflict when the id is another task's."""
        row = _task_row(task, share, state)
        with self._writing() as connection:
            old = connection.execute(select(TASK.c.body).where(TASK.c.id == task.id)).scalar()
            if old is None:
                connection.execute(insert(TASK), row)
            elif old != row["body"]:
                raise Conflict(f"there is another task with the id {task.id}")

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
            if connection.execute(select(RUN.c.no).where(RUN.c.id == run.id)).first():
                return
            state = connection.execute(select(TASK.c.state).where(TASK.c.id == run.task_id)).scalar()
            if state is None:
                raise NotFound(f"there is no task {run.task_id}")
            if state not in (TaskState.QUEUED, TaskState.RUNNING):
                raise Conflict(f"the task {run.task_id} is {state}: it takes no further run")
            _move(connection, run.task_id, (TaskState.QUEUED,), TaskState.RUNNING)
            try:
                connection.execute(insert(RUN), _run_row(run))
            except IntegrityError:
                raise Conflict(
                    f"attempt {run.attempt} at the task {run.task_id} was begun by another run"
                ) from None

    def append_step(self, step: Step) -> None:
        """Store a step of an open run; big values go to blobs. The same step again changes nothing.

        Raises Conflict when the run has another step with this index.
        """
        row = self._step_row(step)
        try:
            with self._writing() as connection:
                connection.execute(insert(STEP), row)
        except IntegrityError:
            kept = self.steps(step.run_id, after=step.index - 1)[0]
            if (kept.node, to_text(kept.action)) != (step.node, row["action"]):
                raise Conflict(f"the run {step.run_id} has another step {step.index}") from None

    def _step_row(self, step: Step) -> dict[str, object]:
        return {
            "run_id": step.run_id,
            "position": step.index,
            "node": step.node,
            "action": to_text(self.blobs.shrink(step.action)),
            "observation": to_text(self.blobs.shrink(step.observation)),
            "fault": to_text(step.fault) if step.fault else None,
            "started_at": time_text(step.started_at),
            "duration_ms": step.duration_ms,
        }

    def finish_run(
        self,
        run_id: str,
        outcome: Outcome,
        answer: Json = None,
        outputs: Sequence[InputFile] = (),
        resources: Sequence[str] = (),
    ) -> int:
        """End a run: outcome, cursor position, task state and audit entry in one transaction.

        The task becomes ``done`` (``cancelled`` or ``waiting`` when the outcome is); an ``infra``
        outcome leaves it as it is, because the caller decides whether there is another attempt. A run that has
        ended stays as it is. Returns its cursor position. Raises NotFound.
        """
        answer = self.blobs.shrink(answer)
        with self._writing() as connection:
            found = connection.execute(select(RUN.c.seq, RUN.c.body).where(RUN.c.id == run_id)).first()
            if found is None:
                raise NotFound(f"there is no run {run_id}")
            if found.seq is not None:
                return int(found.seq)
            run = replace(
                from_text(Run, found.body),
                finished_at=datetime.now(UTC),
                outcome=outcome,
                answer=answer,
                outputs=tuple(outputs),
                resources=tuple(sorted(set(resources))),
            )
            seq = _next(connection, RUN)
            connection.execute(update(RUN).where(RUN.c.id == run_id).values(**_run_row(run), seq=seq))
            _note_use(connection, run, seq)
            if outcome.result is not Result.INFRA:
                end = _STATE_AFTER.get(outcome.result, TaskState.DONE)
                _move(connection, run.task_id, (TaskState.QUEUED, TaskState.RUNNING), end)
            _note(connection, "run.finished", run_id, _about_run(connection, run))
        self._publish()
        return seq

    def add_past(self, task: Task, run: Run, steps: Sequence[Step]) -> bool:
        """Store a run that was made elsewhere and is over, with its task: all or nothing, audited.

        False when a run of this id is there: nothing is changed then.
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
            if connection.execute(select(RUN.c.no).where(RUN.c.id == run.id)).first():
                return False
            seq = _next(connection, RUN)
            connection.execute(insert(TASK), _task_row(task, run.share, TaskState.DONE))
            connection.execute(insert(RUN), _run_row(run) | {"seq": seq})
            if rows:
                connection.execute(insert(STEP), rows)
            _note_use(connection, run, seq)
            _note(connection, "run.imported", run.id, _about_run(connection, run))
        self._publish()
        return True

    def flag(self, run_id: str, reason: str) -> None:
        """Record a user's word that a finished run was bad. Raises NotFound."""
        self.run(run_id)
        with self._writing() as connection:
            row = {"run_id": run_id, "reason": reason, "flagged_at": time_text(datetime.now(UTC))}
            connection.execute(insert(FLAG), row)
            _note(connection, "run.flagged", run_id, {"reason": reason})
        self._publish()

    # --- people -------------------------------------------------------------------------------

    def keep(self, record: Question | Proposal) -> None:
        """Store what a run asks or proposes; one that is there already stays as it is."""
        table = QUESTION if isinstance(record, Question) else PROPOSAL
        with self._writing() as connection:
            if not connection.execute(select(table.c.seq).where(table.c.id == record.id)).first():
                _put(connection, record)

    def answer(self, question_id: str, text: str) -> Question:
        """Answer a question; its task is queued again once no other question of it is open.

        Raises NotFound, and Conflict when it is answered already or its task waits for nothing.
        """
        with self._writing() as connection:
            question = from_text(Question, _body(connection, QUESTION, question_id))
            if question.answer is not None:
                raise Conflict(f"the question {question.id} was answered already: {question.answer[:200]}")
            question = replace(question, answer=text, answered_at=datetime.now(UTC))
            state = connection.execute(select(TASK.c.state).where(TASK.c.id == question.root_id)).scalar()
            if state != TaskState.WAITING:
                raise Conflict(f"the task {question.root_id} is {state}: it waits for no answer")
            _put(connection, question)
            still = (QUESTION.c.root_id == question.root_id) & QUESTION.c.answer.is_(None)
            if not connection.execute(select(QUESTION.c.seq).where(still)).first():
                _move(connection, question.root_id, (TaskState.WAITING,), TaskState.QUEUED)
            said = {"task": question.root_id, "answer": text}
            _note(connection, "question.answered", question.id, said, (question,))
        self._publish()
        return question

    def decide(self, proposal: Proposal) -> None:
        """Store what became of a proposal. Raises NotFound, and Conflict when that is settled."""
        with self._writing() as connection:
            old = from_text(Proposal, _body(connection, PROPOSAL, proposal.id))
            if old.state is not ProposalState.OPEN:
                raise Conflict(f"the proposal {old.id} is {old.state.value} already")
            _put(connection, proposal)
            detail = {"state": proposal.state, "resource": proposal.resource, "reason": proposal.reason}
            _note(connection, "memory.decided", proposal.id, detail, (proposal,))
        self._publish()

    # --- records ------------------------------------------------------------------------------

    def put(self, record: object) -> None:
        """Insert, or replace the record with the same id. Append-only types refuse to change.

        The same record again changes nothing; another one on an append-only shelf is a Conflict.
        """
        with self._writing() as connection:
            _put(connection, record)

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
            at = connection.execute(select(CURSOR.c.position).where(CURSOR.c.name == name)).scalar() or 0
            if at > to or after not in (None, at):
                raise Conflict(
                    f"the cursor {name} is at {at} before it moves to {to}: another reader was faster"
                )
            for record in records:
                _put(connection, record)
            _upsert(connection, CURSOR, "name", {"name": name, "position": to})
            if note:
                _note(connection, *note, records)
        if note:
            self._publish()

    def set_kv(self, key: str, value: Json) -> None:
        """Remember a small JSON value under ``key``."""
        with self._writing() as connection:
            _upsert(connection, MEMO, "key", {"key": key, "value": to_text(value)})

    # --- audit --------------------------------------------------------------------------------

    def note(self, event: str, subject: str, detail: Json, records: Sequence[object] = ()) -> None:
        """Store the records and append one entry with their digests; durable when the call returns."""
        with self._writing() as connection:
            for record in records:
                _put(connection, record)
            _note(connection, event, subject, detail, records)
        self._publish()

    def _publish(self) -> None:
        with self._connection() as connection:
            try:
                self._head_file.publish(connection)
            except OSError as error:
                raise unavailable(self._path.with_name("audit.head"), error) from error


def _move(connection: Connection, id: str, from_states: Collection[TaskState], to: TaskState) -> bool:
    states = [state.value for state in from_states]
    where = (TASK.c.id == id) & TASK.c.state.in_(states)
    return connection.execute(update(TASK).where(where).values(state=to.value)).rowcount == 1


def _run_row(run: Run) -> dict[str, object]:
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
        "body": to_text(run),
    }


def _task_row(task: Task, share: Share, state: TaskState) -> dict[str, object]:
    return {
        "id": task.id,
        "name": task.name,
        "task_key": task.key,
        "share": share.value,
        "state": state.value,
        "agent": task.agent,
        "created_at": time_text(task.created_at),
        "parent": task.parent,
        "body": to_text(task),
    }


def _note_use(connection: Connection, run: Run, seq: int) -> None:
    if run.resources:
        used = [{"resource": name, "task_key": run.task_key, "seq": seq} for name in run.resources]
        connection.execute(insert(RUN_RESOURCE), used)


def _next(connection: Connection, table: Table) -> int:
    # The transaction holds the write lock, so numbers are in the order of commits.
    newest = connection.execute(select(table.c.seq).order_by(table.c.seq.desc()).limit(1)).scalar()
    return int(newest or 0) + 1


def _body(connection: Connection, table: Table, id: str) -> str | bytes:
    found = connection.execute(select(table.c.body).where(table.c.id == id)).scalar()
    if found is None:
        raise NotFound(f"there is no {table.name} {id}")
    body: str | bytes = found
    return body


def _put(connection: Connection, record: object) -> None:
    shelf = shelf_of(type(record))
    row = {name: column_value(getattr(record, name)) for name in shelf.columns}
    row |= {"id": id_of(record), "body": body_of(record)}
    old = connection.exec_driver_sql(f"SELECT body FROM {shelf.table} WHERE id = ?", (row["id"],)).scalar()  # noqa: S608
    if old is None:
        _insert(connection, shelf.table, row)
    elif plain(old) == to_text(record):
        return
    elif shelf.append_only:
        raise Conflict(f"the {shelf.table} {row['id']} stands already and is never changed")
    else:
        changes = ", ".join(f"{name} = ?" for name in row)
        values = (*row.values(), row["id"])
        connection.exec_driver_sql(f"UPDATE {shelf.table} SET {changes} WHERE id = ?", values)  # noqa: S608


def _insert(connection: Connection, table: str, row: dict[str, object]) -> None:
    """Said in SQL, where a statement is used for every record: building one anew costs as much as it does."""
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    connection.exec_driver_sql(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))  # noqa: S608


def _upsert(connection: Connection, table: Table, key: str, row: dict[str, object]) -> None:
    rest = {name: value for name, value in row.items() if name != key}
    connection.execute(upsert(table).values(**row).on_conflict_do_update(index_elements=[key], set_=rest))


def _rows_in(connection: Connection) -> Rows:
    """Runs statements of ``digests`` within the transaction."""
    return lambda sql, *values: connection.exec_driver_sql(sql, values)


def _about_run(connection: Connection, run: Run) -> Json:
    """What the entry of a run's end says: its result, and the digest of its row and its steps."""
    sha256 = of_run(_rows_in(connection), run.id, to_text(run))
    result = run.outcome.result if run.outcome else None
    return {"result": result, "task": run.task_id, RECORDS: {f"run/{run.id}": sha256}}


def _note(
    connection: Connection, event: str, subject: str, detail: Json, records: Sequence[object] = ()
) -> None:
    if records:
        detail = {**detail, **of_records(_rows_in(connection), records)}
    last = connection.exec_driver_sql("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1").first()
    head = Head(last.seq, last.hash) if last else Head()
    entry = chained(head, time_text(datetime.now(UTC)), event, subject, json.dumps(detail, sort_keys=True))
    row = {
        "seq": entry.seq,
        "at": entry.at,
        "event": entry.event,
        "subject": entry.subject,
        "detail": entry.detail_text,
        "previous": entry.previous,
        "hash": entry.hash,
    }
    _insert(connection, "audit", row)


__all__ = ["Ledger"]
