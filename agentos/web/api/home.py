"""The home behind the API: read by all, written one act at a time, each act on record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agentos.daemon.control.tokens import Token
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry


@dataclass(frozen=True, slots=True)
class ApiHome:
    """What operations work on; every part is safe from any thread."""

    home: Home
    reader: Reader
    registry: Registry


@contextmanager
def writing(home: Home) -> Iterator[Ledger]:
    """The ledger, for one act."""
    ledger = Ledger(home.ledger)
    try:
        yield ledger
    finally:
        ledger.close()


def note_act(site: ApiHome, token: Token, act: str, subject: str) -> None:
    """On record: who did it, and by which token."""
    said = {"act": act, "token": token.name, "token_id": token.id, "principal": token.principal}
    with writing(site.home) as ledger:
        ledger.note("api.act", subject, said)
