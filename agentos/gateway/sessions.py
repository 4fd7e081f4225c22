"""Grants that are open: which token stands for which run, and how far that run has come."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentos.domain import ModelSpec
from agentos.errors import ModelFailed
from agentos.gateway.budgets import BudgetAccount
from agentos.ports import Grant

LIFE_S = 24 * 3600.0  # a token that nobody revoked ends by itself
_DEFAULT_NAMES = frozenset({"", "default"})


@dataclass(slots=True)
class Session:
    """One grant in use. ``taken`` has the numbers that are given out for each key."""

    id: str
    grant: Grant
    accounts: tuple[BudgetAccount, ...]
    ends_at: float  # monotonic
    diverged: bool  # asks from now on, see Mode.REPLAY_THEN_LIVE
    taken: dict[str, set[int]] = field(default_factory=dict)

    def take(self, key: str) -> int:
        """The number of this call among equal ones: the first that is free."""
        taken = self.taken.setdefault(key, set())
        nth = next(number for number in range(len(taken) + 1) if number not in taken)
        taken.add(nth)
        return nth

    def give_back(self, key: str, nth: int) -> None:
        """The call came to nothing; an equal one has its number again."""
        self.taken[key].discard(nth)

    def spec(self, name: object) -> ModelSpec:
        """The granted model of this name; raises ModelFailed("not_allowed")."""
        if not self.grant.models:
            raise ModelFailed("not_allowed", "this run may ask no model")
        if name is None or (isinstance(name, str) and name in _DEFAULT_NAMES):
            return self.grant.models[0]
        for spec in self.grant.models:
            if spec.name == name:
                return spec
        names = ", ".join(spec.name for spec in self.grant.models)
        raise ModelFailed(
            "not_allowed", f"this run may ask {names}, but not {str(name)[:100]!r}; leave 'model' out"
        )


class Tokens:
    """Finds the session that a token stands for. Only hashes are kept."""

    def __init__(self) -> None:
        self._by_hash: dict[str, Session] = {}
        self._hash_of: dict[str, str] = {}

    def add(self, session: Session) -> str:
        """A fresh token for the session."""
        token = secrets.token_urlsafe(32)
        self._by_hash[_hash(token)] = session
        self._hash_of[session.id] = _hash(token)
        return token

    def find(self, token: str) -> Session | None:
        """None for one that was forged, revoked, or is too old."""
        session = self._by_hash.get(_hash(token))
        return session if session is not None and time.monotonic() < session.ends_at else None

    def revoke(self, session_id: str) -> Session | None:
        """Forget the session and its token; None when it is not known."""
        return self._by_hash.pop(self._hash_of.pop(session_id, ""), None)

    def expired(self) -> Sequence[str]:
        """Ids of sessions whose time is over."""
        now = time.monotonic()
        return [session.id for session in self._by_hash.values() if session.ends_at <= now]

    def __len__(self) -> int:
        return len(self._by_hash)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
