"""Grants that are open: which token stands for which run, and how far that run has come."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentos.domain import Budget, ModelSpec
from agentos.errors import ModelFailed
from agentos.gateway.calls import CallTotals
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


# -------------------------------------------------------------------------------------------------
# Budgets: a call reserves what it may use before it is made, so that calls side by side cannot
# overshoot.


@dataclass(slots=True, weakref_slot=True)
class BudgetAccount:
    """What one run, evolution or day may use, has used, and holds reserved for calls under way."""

    kind: str  # of the failure when it is used up: errors.ModelFailed
    what: str  # "the run", for sentences
    advice: str  # where the limit is set
    limit: Budget
    used: CallTotals
    held: CallTotals = field(default_factory=CallTotals)

    def refusal(self, wanted: CallTotals) -> str:
        """ "" when there is room for ``wanted``, else the sentence that says what is used up."""
        kinds: tuple[tuple[str, float, float, float, float], ...] = (
            ("calls", self.limit.calls, self.used.calls, self.held.calls, wanted.calls),
            ("tokens", self.limit.tokens, self.used.tokens, self.held.tokens, wanted.tokens),
            ("US dollars", self.limit.usd, self.used.usd, self.held.usd, wanted.usd),
            ("seconds", self.limit.seconds, self.used.seconds, 0.0, 1e-9),
        )
        for unit, limit, used, held, more in kinds:
            if limit and used + held + more > limit * (1 + 1e-9):
                under_way = f" and {_number(held)} reserved by calls under way" if held else ""
                return (
                    f"{self.what} may use {_number(limit)} {unit} of model calls; {_number(used)} are used"
                    f"{under_way}, and this call may take {_number(more)}; {self.advice}"
                )
        return ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"


def plus(left: CallTotals, right: CallTotals) -> CallTotals:
    """Both together."""
    return CallTotals(
        left.calls + right.calls,
        left.tokens + right.tokens,
        left.usd + right.usd,
        left.seconds + right.seconds,
    )


def minus(left: CallTotals, right: CallTotals) -> CallTotals:
    """``left`` without ``right``."""
    return plus(left, CallTotals(-right.calls, -right.tokens, -right.usd, -right.seconds))


class Reservation:
    """What one call has reserved. ``settle`` gives it back and books what was used instead."""

    def __init__(self, accounts: Sequence[tuple[BudgetAccount, CallTotals]], wanted: CallTotals) -> None:
        self._accounts = accounts
        self._wanted = wanted
        for account, booked in accounts:
            account.held = plus(account.held, minus(wanted, booked))

    def settle(self, used: CallTotals | None) -> None:
        """``used`` is None when the call was never made. Once."""
        for account, booked in self._accounts:
            account.held = minus(account.held, minus(self._wanted, booked))
            if used is not None:
                account.used = plus(account.used, minus(used, booked))


def reserve(accounts: Sequence[tuple[BudgetAccount, CallTotals]], wanted: CallTotals) -> Reservation:
    """Reserve in all accounts or none.

    Beside each account stands what it has booked already for an earlier try of the same call.
    Raises ModelFailed of the kind and with the sentence of the first account that has no room.
    """
    for account, booked in accounts:
        if refusal := account.refusal(minus(wanted, booked)):
            raise ModelFailed(account.kind, refusal)
    return Reservation(accounts, wanted)
