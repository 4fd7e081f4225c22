"""Is the loop healthy? Computed from what is on record; docs/understand/health.md says how to read it.

Four questions: does a failure get mended, and does it stay away? what does a mended failure cost? is the
library growing for a reason, or only growing? do agents become less safe by what they learn?
"""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agentos.domain import Evidence, Evolution, EvolutionState, Feedback, SafetyRate, SupervisorWorth
from agentos.evolver.find.feedback import taken_back
from agentos.ports import KnownLesson

PERIODS = 24  # at most, in a series over time
_STEPS = (
    timedelta(minutes=1),
    timedelta(minutes=10),
    timedelta(hours=1),
    timedelta(hours=6),
    timedelta(days=1),
    timedelta(days=7),
    timedelta(days=28),
)
PROMOTED, ROLLED_BACK, HELD = (
    EvolutionState.PROBATION.value,
    EvolutionState.ROLLED_BACK.value,
    EvolutionState.HELD.value,
)
# Ends that come to nothing, for the series over time.
_FRUITLESS = frozenset(
    {
        EvolutionState.REJECTED.value,
        EvolutionState.NO_IMPROVEMENT.value,
        EvolutionState.NOT_REPRODUCIBLE.value,
        EvolutionState.CANNOT_FIX.value,
        EvolutionState.CIRCUIT_BROKEN.value,
        EvolutionState.STALE.value,
        EvolutionState.CANCELLED.value,
    }
)


@dataclass(frozen=True, slots=True)
class FixRecord:
    """One promoted fix: when its failure was first seen, when it came, and when the failure came again."""

    evolution_id: str
    resource: str
    failed_at: datetime
    promoted_at: datetime
    recurred_at: datetime | None = None
    rolled_back_at: datetime | None = None  # or changed by a person: it stands no longer

    @property
    def took_s(self) -> float:
        """From the first failure to the promotion."""
        return (self.promoted_at - self.failed_at).total_seconds()

    @property
    def lasted_s(self) -> float | None:
        """From the promotion to the recurrence, None without one."""
        return (self.recurred_at - self.promoted_at).total_seconds() if self.recurred_at else None


@dataclass(frozen=True, slots=True)
class ResourceCounts:
    """Resources of one kind: shipped, made here, and of those how many any run used."""

    kind: str
    shipped: int
    created: int
    used: int

    @property
    def ratio(self) -> float | None:
        """Used of created, None where nothing was created."""
        return self.used / self.created if self.created else None


@dataclass(frozen=True, slots=True)
class HealthPeriod:
    """What happened in one stretch of time."""

    start: datetime
    promoted: int
    rolled_back: int
    held: int
    fruitless: int


@dataclass(frozen=True, slots=True)
class EvolutionCost:
    """What all evolutions used, those that came to nothing included, and for each promoted fix that stands."""

    usd: float
    trials: int
    cpu_s: float
    fixes: int

    def each(self, total: float) -> float | None:
        """A share of a total for each fix, None without any."""
        return total / self.fixes if self.fixes else None


@dataclass(frozen=True, slots=True)
class FeedbackAccuracy:
    """What one person said of runs, and how often that was right: shown by what was measured since.

    A bad word was right where a fix for it was promoted and stands; wrong where the run's work did not fail again by
    it, or where a later word on the same run says the opposite. Of the rest nothing is known yet.
    """

    principal: str
    good: int
    bad: int
    right: int
    wrong: int

    @property
    def share(self) -> float | None:
        """Right of those that were settled, None without any."""
        settled = self.right + self.wrong
        return self.right / settled if settled else None


@dataclass(frozen=True, slots=True)
class Health:
    """The whole page."""

    at: datetime
    states: Mapping[str, int]  # evolutions by where they stand
    series: tuple[HealthPeriod, ...]
    step_s: float  # of the series
    mended: tuple[FixRecord, ...]  # oldest first
    price: EvolutionCost
    library: tuple[ResourceCounts, ...]
    memories: tuple[KnownLesson, ...]
    safety: tuple[SafetyRate, ...]  # oldest first
    words: tuple[FeedbackAccuracy, ...] = ()  # by person
    supervisor: tuple[SupervisorWorth, ...] = ()  # by check

    @property
    def took_s(self) -> float | None:
        """Median from a failure to its promoted fix."""
        return _median([item.took_s for item in self.mended])

    @property
    def recurred(self) -> int:
        """Fixes whose failure came again while they stood."""
        return sum(item.recurred_at is not None for item in self.mended)


def mended(
    evolutions: Iterable[Evolution],
    evidence: Iterable[Evidence],
    came_to: Mapping[tuple[str, str], datetime],
    seen: Iterable[tuple[str, str, datetime]],
) -> list[FixRecord]:
    """Every promotion, by time. ``came_to`` has moments by (evolution, state); ``seen`` is (run, fingerprint, moment)."""
    batches = {item.id: item for item in evidence}
    by_run: dict[str, datetime] = {}
    by_print: dict[str, list[datetime]] = {}
    for run_id, name, moment in seen:
        by_run[run_id] = min(moment, by_run.get(run_id, moment))
        by_print.setdefault(name, []).append(moment)
    for moments in by_print.values():
        moments.sort()
    found = []
    mended_at: dict[str, datetime] = {}  # the last time before, by fingerprint: what failed earlier is over
    promoted = [item for item in evolutions if (item.id, PROMOTED) in came_to]
    for evolution in sorted(promoted, key=lambda item: came_to[item.id, PROMOTED]):
        promoted_at = came_to[evolution.id, PROMOTED]
        batch = batches.get(evolution.evidence_id)
        if batch is None:
            continue
        before = mended_at.get(evolution.fingerprint_id)
        mended_at[evolution.fingerprint_id] = promoted_at
        failed = [by_run[run_id] for run_id in batch.run_ids if run_id in by_run]
        first = [moment for moment in failed if before is None or moment > before]
        undone = evolution.undone_at or came_to.get((evolution.id, ROLLED_BACK))
        moments = by_print.get(evolution.fingerprint_id, [])
        later = bisect_right(moments, promoted_at)
        again = moments[later] if later < len(moments) else None
        if again is not None and undone is not None and again >= undone:
            again = None
        found.append(
            FixRecord(
                evolution.id,
                evolution.resource,
                min([*first, promoted_at]),
                promoted_at,
                again,
                undone,
            )
        )
    return found


def series(
    came_to: Mapping[tuple[str, str], datetime], now: datetime
) -> tuple[tuple[HealthPeriod, ...], timedelta]:
    """What came of evolutions over time, in at most ``PERIODS`` stretches, and the length of one."""
    names = {PROMOTED: "promoted", ROLLED_BACK: "rolled_back", HELD: "held"}
    names |= dict.fromkeys(_FRUITLESS, "fruitless")
    last: dict[str, tuple[datetime, str]] = {}  # each counts once, as what it came to in the end
    for (name, state), moment in came_to.items():
        if state in names and (name not in last or moment >= last[name][0]):
            last[name] = moment, names[state]
    events = [*last.values()]
    if not events:
        return (), _STEPS[0]
    first = min(moment for moment, _ in events)
    span = max(now, *(moment for moment, _ in events)) - first
    step = next((item for item in _STEPS if span < item * PERIODS), span / PERIODS + _STEPS[0])
    counts = [Counter[str]() for _ in range(int(span / step) + 1)]
    for moment, name in events:
        counts[int((moment - first) / step)][name] += 1
    periods = tuple(
        HealthPeriod(
            first + step * number, count["promoted"], count["rolled_back"], count["held"], count["fruitless"]
        )
        for number, count in enumerate(counts)
    )
    return periods, step


def library(
    present: Iterable[str], shipped: Iterable[str], used: Iterable[str]
) -> tuple[ResourceCounts, ...]:
    """By kind, from the names (``kind/name``) of what there is, of what was shipped, and of what runs used."""
    there, came_with = set(present), set(shipped)
    seen = set(used)
    shelves = []
    for kind in sorted({name.split("/")[0] for name in there}):
        own = {name for name in there if name.split("/")[0] == kind}
        created = own - came_with
        shelves.append(ResourceCounts(kind, len(own & came_with), len(created), len(created & seen)))
    return tuple(shelves)


def safety(found: Iterable[SafetyRate]) -> tuple[SafetyRate, ...]:
    """Each measurement once, oldest first, however many evolutions made use of it."""
    seen = {(rate.at, rate.tree, rate.agent, rate.learnt, rate.place): rate for rate in found}
    return tuple(seen[key] for key in sorted(seen))


def words(
    said: Sequence[Feedback], evidence: Iterable[Evidence], evolutions: Iterable[Evolution]
) -> tuple[FeedbackAccuracy, ...]:
    """What each person's words came to, by the name of the person."""
    batch_of = {run_id: item.id for item in evidence for run_id in item.run_ids}
    newest = {item.evidence_id: item for item in evolutions}  # oldest first: the last try of each batch
    opposed = taken_back(said)
    counts: dict[str, Counter[str]] = {}
    for word in said:
        count = counts.setdefault(word.principal, Counter())
        count[word.rating.value] += 1
        tried = newest.get(batch_of.get(word.regraded_id, ""))
        if word.id in opposed or (tried is not None and tried.state is EvolutionState.NOT_REPRODUCIBLE):
            count["wrong"] += 1
        elif tried is not None and tried.stands:
            count["right"] += 1
    return tuple(
        FeedbackAccuracy(name, count["good"], count["bad"], count["right"], count["wrong"])
        for name, count in sorted(counts.items())
    )


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def duration(seconds: float | None) -> str:
    """In the largest unit of which there are two, or in seconds; "-" for None."""
    if seconds is None:
        return "-"
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:,.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
