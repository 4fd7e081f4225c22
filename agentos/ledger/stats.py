"""Totals over the whole ledger, for the page on its health: added up by SQLite, no record is read for them."""

# ruff: noqa: S608 - what is put in are constants of this module

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentos.ledger.reading import Reader
from agentos.ledger.rows.statements import SEEN

# Each resource once, by stepping over its uses: DISTINCT would read all of them.
_RESOURCES = (
    "WITH RECURSIVE names (name) AS (SELECT min(resource) FROM run_resource UNION ALL "
    "SELECT (SELECT min(resource) FROM run_resource WHERE resource > name) FROM names WHERE name IS NOT NULL) "
)


@dataclass(frozen=True, slots=True)
class StateChange:
    """When an evolution first came to a state."""

    evolution_id: str
    state: str
    at: datetime


@dataclass(frozen=True, slots=True)
class SpentTotals:
    """What the trials of one evolution used; model calls are on record elsewhere."""

    trials: int
    cpu_s: float


@dataclass(frozen=True, slots=True)
class SeenTotals:
    """A failing run, its fingerprint, and when it was seen."""

    run_id: str
    fingerprint_id: str
    at: datetime


class LedgerStats(Reader):
    """A reader that adds up."""

    def moments(self) -> Sequence[StateChange]:
        """When each evolution first came to each of its states, oldest first."""
        rows = self._rows(
            "SELECT subject, substr(event, 11), min(at) FROM audit "
            "WHERE event >= 'evolution.' AND event < 'evolution/' GROUP BY subject, event ORDER BY min(seq)"
        )
        return [StateChange(subject, state, datetime.fromisoformat(at)) for subject, state, at in rows]

    def spent(self) -> Mapping[str, SpentTotals]:
        """By evolution. A trial that was taken over from another evolution is counted there, where it was made."""
        rows = self._rows(
            "SELECT evolution_id, sum(trials), sum(cpu_s) FROM (SELECT evolution_id, count(*) AS trials, "
            "coalesce(sum(CAST(json_extract(body, '$.outcome.cost.cpu_s') AS double precision)), 0.0) AS cpu_s FROM trial "
            "WHERE coalesce(json_extract(body, '$.taken_from'), '') = '' GROUP BY evolution_id "
            "UNION ALL SELECT evolution_id, trials, cpu_s FROM trial_pack) AS used GROUP BY evolution_id"
        )
        return {name: SpentTotals(int(trials), float(cpu_s)) for name, trials, cpu_s in rows}

    def seen(self) -> Sequence[SeenTotals]:
        """Every sighting, oldest first; without those of hidden tasks."""
        rows = self._rows(
            "SELECT run_id, fingerprint, json_extract(body, '$.seen_at') FROM sighting "
            f"WHERE {SEEN} ORDER BY seq"
        )
        return [SeenTotals(run_id, name, datetime.fromisoformat(at)) for run_id, name, at in rows]

    def uses(self) -> Mapping[str, int]:
        """How many finished runs used each resource that any run used; those that were pruned are not counted."""
        rows = self._rows(
            f"{_RESOURCES} SELECT name, (SELECT count(*) FROM run_resource WHERE resource = name) "
            "FROM names WHERE name IS NOT NULL"
        )
        return {name: int(count) for name, count in rows}
