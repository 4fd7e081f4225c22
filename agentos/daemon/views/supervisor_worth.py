"""What the supervisor's checks are worth, as the daemon measured it last."""

from __future__ import annotations

from agentos.domain import SupervisorWorth
from agentos.ledger.reading import Reader
from agentos.supervisor.worth import measure

FITTED = "supervisor.fitted"  # memo in the ledger: {"norms", "worth"}


def worth_of(ledger: Reader) -> tuple[SupervisorWorth, ...]:
    """By check; before anything was measured, what that allows."""
    kept = ledger.get_kv(FITTED)
    return tuple(SupervisorWorth(**one) for one in kept["worth"]) if kept else measure((), 0.0, 0.0)
