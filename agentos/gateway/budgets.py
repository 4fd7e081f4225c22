"""Budgets: a call reserves what it may use before it is made, so that calls side by side cannot overshoot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agentos.domain import Budget
from agentos.errors import ModelFailed
from agentos.gateway.calls import CallTotals


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
