"""SQL for one row, as text: sqlite3 keeps what it prepared by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentos.domain import Candidate, Evolution, Run, Share, Task, TaskState, Trial, TrialSet
from agentos.errors import Conflict, NotFound
from agentos.ledger.rows.codec import encode, from_text, kept, plain, time_text, to_json, to_text, written
from agentos.ledger.rows.record_types import RecordType, column_value, id_of, is_packed, shelf_of
from agentos.ledger.rows.schema import LedgerConnection

# ruff: noqa: S608 - names of tables and columns are constants of this package; values are bound


SEEN = "coalesce(CAST(json_extract(body, '$.hidden') AS text), '') <> '1'"  # sightings of work that is not hidden


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
            raise Conflict(f"the {shelf.table} {name} stands already and is never changed")
        if (over := _ended(connection, record, there.get(name))) is not None:
            raise Conflict(f"the evolution {over.id} has ended meanwhile: it is {over.state.value}.")
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
