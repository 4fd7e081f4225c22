"""Trials of evolutions that are over, all of one in one row: alike as they are, they take a tenth of the room.

Nothing asks for a single one of them any more, only for all of an evolution's: to show it, to judge it again,
and to see which edit came close.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from agentos.domain import Trial
from agentos.ledger.codec import bundle, from_text
from agentos.ledger.tables import TABLE_OF

TRIAL, PACK = TABLE_OF["trial"], TABLE_OF["trial_pack"]


def pack(connection: Connection, evolution_id: str) -> None:
    """Put its trials into one row. The caller knows that the evolution is over."""
    own = TRIAL.c.evolution_id == evolution_id
    texts = list(connection.execute(select(TRIAL.c.body).where(own).order_by(TRIAL.c.seq)).scalars())
    if not texts:
        return
    cpu_s = sum(from_text(Trial, text).outcome.cost.cpu_s for text in texts)
    row = {"evolution_id": evolution_id, "trials": len(texts), "cpu_s": cpu_s, "body": bundle(texts)}
    connection.execute(insert(PACK), row)
    connection.execute(delete(TRIAL).where(own))
