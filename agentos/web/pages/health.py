"""Health: how the loop does, what models cost today and may cost, and whether they answered."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agentos.daemon.views.loop_health import measure
from agentos.domain import Kind
from agentos.errors import Unavailable
from agentos.evolver.watch.health import Health
from agentos.gateway.calls import CallReading, ModelToday
from agentos.ledger.listing import state_counts
from agentos.ledger.rows.codec import from_text, to_text
from agentos.models.stop import ModelStop, model_stop
from agentos.settings import load_settings
from agentos.web.context import WebContext

KEPT_S = 30.0  # for which a measurement serves; it reads all evolutions
_BESIDE = 500  # evolutions, from which on it is measured in a process of its own, whose memory goes with it
_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """What was used today of one unit. ``limit`` 0: there is none."""

    unit: str
    used: float
    limit: float

    @property
    def share(self) -> float:
        """Of the limit, at most 1."""
        return min(1.0, self.used / self.limit) if self.limit else 0.0


@dataclass(frozen=True, slots=True)
class ModelLine:
    """A model of the registry, and what it did today (of UTC)."""

    name: str
    calls: int
    served: int
    tokens: int
    usd: float | None
    faults: Mapping[str, int]

    @property
    def answers(self) -> str:
        """Whether it answered today: yes, partly, no, or not asked."""
        if not self.calls:
            return "not asked"
        failed = sum(self.faults.values())
        return "yes" if not failed else "partly" if failed < self.calls else "no"


@dataclass(frozen=True, slots=True)
class Spending:
    """Today's, for all of the home."""

    budgets: Sequence[BudgetLine]
    models: Sequence[ModelLine]
    stopped: ModelStop | None


def loop_health(site: WebContext) -> Health:
    """How the loop does; what was measured up to ``KEPT_S`` ago, or while it is measured anew."""
    return site.kept.late("health", KEPT_S, lambda: _measured(site))


def _measured(site: WebContext) -> Health:
    if sum(state_counts(site.reader, "evolution").values()) < _BESIDE:
        return measure(site.home, datetime.now(UTC))
    command = [sys.executable, "-P", "-m", "agentos.web.pages.health", str(site.home.root)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        told = f"How the loop does could not be measured in {_PATIENCE_S:g} s: is the machine very busy?"
        raise Unavailable(f"{told} `agentos evolution health` takes its time.") from None
    if done.returncode:
        raise Unavailable(f"How the loop does could not be measured: {done.stderr.strip()[-300:]}")
    return from_text(Health, done.stdout)


def spending(site: WebContext) -> Spending:
    """Today's calls against the budgets of the settings."""
    budget = load_settings(site.home.settings).budget.day
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    reading = CallReading(site.home.calls)
    try:
        used = reading.spent(midnight=midnight)
        today = {one.model: one for one in reading.models_on(midnight)}
    finally:
        reading.close()
    units = (
        ("US dollars", used.usd, budget.usd),
        ("tokens", used.tokens, budget.tokens),
        ("calls", used.calls, budget.calls),
        ("seconds", used.seconds, budget.seconds),
    )
    names = [it.name for it in site.registry.names(site.registry.stable()) if it.kind is Kind.MODEL]
    return Spending(
        [BudgetLine(unit, have, limit) for unit, have, limit in units],
        [_line(name, today.get(name)) for name in sorted({*names, *today})],
        model_stop(site.home),
    )


def _line(name: str, used: ModelToday | None) -> ModelLine:
    if used is None:
        return ModelLine(name, 0, 0, 0, 0.0, {})
    return ModelLine(name, used.calls, used.served, used.tokens, used.usd, used.faults)


if __name__ == "__main__":
    from agentos.home import Home

    print(to_text(measure(Home.find(sys.argv[1]), datetime.now(UTC))))
