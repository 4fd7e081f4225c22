"""Stopping all model calls of a home and letting them go on: done, and audited."""

from __future__ import annotations

from contextlib import closing

from agentos.errors import Conflict
from agentos.home import Home
from agentos.ledger.postgres.address import require_ledger
from agentos.ledger.store import Ledger
from agentos.models.stop import let_models_go_on, model_stop, stop_models


def stop(home: Home, principal: str, reason: str) -> None:
    """Begin no model call from now on. What waits for a model waits. Raises Conflict where it is so already."""
    require_ledger(home.ledger)
    if (known := model_stop(home)) is not None:
        raise Conflict(f"Model calls are stopped already, by {known.principal}.")
    stop_models(home, principal, reason)
    _note(home, "models.stopped", principal, reason)


def resume(home: Home, principal: str, reason: str) -> None:
    """Begin calls again. Raises Conflict where they are not stopped."""
    require_ledger(home.ledger)
    if model_stop(home) is None:
        raise Conflict("Model calls are not stopped.")
    let_models_go_on(home)
    _note(home, "models.resumed", principal, reason)


def _note(home: Home, event: str, principal: str, reason: str) -> None:
    with closing(Ledger(home.ledger)) as ledger:
        ledger.note(event, "models", {"principal": principal, "reason": reason})
