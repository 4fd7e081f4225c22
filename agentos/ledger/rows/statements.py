"""SQL for one row, as text: sqlite3 keeps what it prepared by it."""

# ruff: noqa: S608 - names of tables and columns are constants of this package; values are bound

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentos.errors import NotFound
from agentos.ledger.rows.schema import LedgerConnection

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


def update(connection: LedgerConnection, table: str, row: Mapping[str, object]) -> None:
    """The row with the same id."""
    changes = ", ".join(f"{name} = ?" for name in row)
    connection.execute(f"UPDATE {table} SET {changes} WHERE id = ?", (*row.values(), row["id"]))


def upsert(connection: LedgerConnection, table: str, key: Sequence[str], row: Mapping[str, object]) -> None:
    """One row, or its new values where one with the same ``key`` stands."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in row if name not in key)
    insert(connection, table, row, f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}")
