"""What an audit entry says of the records that it speaks of: their digests, as they stand in their rows.

``detail["records"]`` maps ``table/id`` to the SHA-256 of a record's stored text; of a run that is over, of its
text and its steps. ``detail["sets"]`` maps a table to the number of an evolution's records in it and the
SHA-256 of all their texts in their order. The text is hashed and not the record, so that a release that adds a
field changes nothing of what an earlier one wrote.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from agentos.domain import Evolution, Json
from agentos.ledger.rows.codec import plain, to_text
from agentos.ledger.rows.record_types import id_of, shelf_of

RECORDS, SETS = "records", "sets"
SET_TABLES = ("candidate", "trial", "safety_rate", "review", "attestation")
STEP_COLUMNS = "position, node, action, observation, fault, started_at, duration_ms"

Rows = Callable[..., Iterable[Sequence[Any]]]  # runs a statement with its values


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
            own += [json.dumps(item, separators=(",", ":")) for item in json.loads(plain(body))]
    sql = f"SELECT body FROM {table} WHERE evolution_id = ? ORDER BY seq"  # noqa: S608 - of this module
    return own + [plain(body) for (body,) in rows(sql, evolution_id)]


def of_set(texts: Sequence[str]) -> str:
    """Of several records in their order."""
    found = hashlib.sha256()
    for text in texts:
        found.update(hashlib.sha256(text.encode()).digest())
    return found.hexdigest()


def of_records(rows: Rows, records: Sequence[object]) -> dict[str, Json]:
    """What the entry that speaks of these records says of them beside its own words.

    An evolution is sealed with all that belongs to it once it has ended; until then it changes too often.
    """
    ended = [item for item in records if isinstance(item, Evolution) and item.ended_at is not None]
    sealed = [item for item in records if not isinstance(item, Evolution) or item in ended]
    said: dict[str, Json] = {}
    if sealed:
        said[RECORDS] = {
            f"{shelf_of(type(item)).table}/{id_of(item)}": of_text(to_text(item)) for item in sealed
        }
    for evolution in ended:
        found = {table: texts_of(rows, table, evolution.id) for table in SET_TABLES}
        said[SETS] = {table: [len(texts), of_set(texts)] for table, texts in found.items() if texts}
    return said
