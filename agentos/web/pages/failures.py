"""Failures: runs that failed alike, how often lately, what was tried, and whether one is muted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from markupsafe import Markup

from agentos.domain import Evolution
from agentos.evolver.find.triage import MUTED
from agentos.ledger.listing import (
    FailureGroup,
    evolution_page,
    failure_group,
    failure_groups,
    failures_by_day,
    odd_cursors,
)
from agentos.web.context import WebContext, plural
from agentos.web.pages.charts import sparkline

_DAYS = 30
_TRIED = 5  # evolutions of a failure in the list; its own page has more


@dataclass(frozen=True, slots=True)
class FailureLine:
    """A failure. ``spark``: how often on each of the last days."""

    group: FailureGroup
    spark: Markup
    tried: Sequence[Evolution]
    muted: bool


def failure_lines(site: WebContext, limit: int) -> list[FailureLine]:
    """The one that was seen last first."""
    muted, groups = odd_cursors(site.reader, MUTED), failure_groups(site.reader, limit)
    return [_line(site, group, _TRIED, muted=group.fingerprint.id in muted) for group in groups]


def failure_line(site: WebContext, fingerprint_id: str) -> FailureLine:
    """One of them. Raises NotFound."""
    group = failure_group(site.reader, fingerprint_id)
    return _line(site, group, 50, muted=group.fingerprint.id in odd_cursors(site.reader, MUTED))


def _line(site: WebContext, group: FailureGroup, tried: int, *, muted: bool) -> FailureLine:
    name, today = group.fingerprint.id, datetime.now(UTC)
    days = [f"{today - timedelta(days=back):%Y-%m-%d}" for back in range(_DAYS - 1, -1, -1)]
    counts = failures_by_day(site.reader, name, today - timedelta(days=_DAYS - 1))
    bars = [counts.get(day, 0) for day in days]
    title = f"{plural(sum(bars), 'time')} in the last {_DAYS} days, {bars[-1]} today"
    past = evolution_page(site.reader, tried, fingerprint_id=name).rows
    return FailureLine(group, sparkline(bars, title), past, muted)
