"""The migrations on PostgreSQL: the same files, said in its dialect, in one transaction."""

from __future__ import annotations

import sqlite3
from typing import Any

import psycopg
from sqlalchemy import create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from agentos.ledger.migrations import upgrade
from agentos.ledger.postgres.connection import WRITERS
from agentos.ledger.postgres.dialect import FUNCTIONS, migration


def migrate(address: str) -> None:
    """Bring the ledger there up to this program's schema, or make it. Raises sqlite3.Error, like all of the ledger."""
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(address), poolclass=NullPool
    )

    @event.listens_for(engine, "before_cursor_execute", retval=True)
    def translate(_connection: Any, _cursor: Any, sql: str, values: Any, *_: Any) -> tuple[str, Any]:
        return migration(sql), values

    try:
        with engine.begin() as connection:
            # another process may be at it: then nothing is left to do
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITERS})")
            connection.exec_driver_sql(FUNCTIONS.replace("%", "%%"))
            upgrade(connection)
    except DBAPIError as error:
        raise sqlite3.OperationalError(" ".join(str(error.orig or error).split())) from error
    finally:
        engine.dispose()
