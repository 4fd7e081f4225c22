"""Trials of evolutions that are over, all of one in one row: alike as they are, they take a tenth of the room.

Nothing asks for a single one of them any more, only for all of an evolution's: to show it, to judge it again,
and to see which edit came close.
"""

from __future__ import annotations

from agentos.domain import Trial
from agentos.ledger.rows.codec import bundle, from_text
from agentos.ledger.rows.schema import LedgerConnection


def pack(connection: LedgerConnection, evolution_id: str) -> None:
    """Put its trials into one row. The caller knows that the evolution is over."""
    rows = connection.execute("SELECT body FROM trial WHERE evolution_id = ? ORDER BY seq", (evolution_id,))
    texts = [text for (text,) in rows]
    if not texts:
        return
    costs = [trial.outcome.cost.cpu_s for text in texts if not (trial := from_text(Trial, text)).taken_from]
    row = (evolution_id, len(costs), sum(costs), bundle(texts))
    connection.execute("INSERT INTO trial_pack (evolution_id, trials, cpu_s, body) VALUES (?, ?, ?, ?)", row)
    connection.execute("DELETE FROM trial WHERE evolution_id = ?", (evolution_id,))
