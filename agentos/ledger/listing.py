"""Long lists, a page at a time: by the place of a row, so that page 1,000 costs what page 1 does.

Standard library only, like ``ledger.reading``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from agentos.domain import Evolution, Fingerprint, Run, Share, Sighting, Task, TaskState, dataclass
from agentos.errors import NotFound
from agentos.ledger.reading import Reader, TaskView
from agentos.ledger.rows.codec import from_text
from agentos.ledger.rows.record_types import SEEN

# ruff: noqa: S608 - names of tables and columns are constants of this module; values are bound


R = TypeVar("R")
_DAYS_MAX = 2_000  # newest sightings of a failure that are counted by day
_SCAN_MAX = 20_000  # newest rows that are looked through for a text


@dataclass(frozen=True, slots=True)
class ListPage(Generic[R]):
    """Newest first. ``older``: the place to ask for what comes after it, 0 where nothing does."""

    rows: Sequence[R]
    older: int


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """All sightings of one fingerprint; those of hidden work are not counted."""

    fingerprint: Fingerprint
    count: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class LedgerCounts:
    """How many there are of each."""

    tasks: Mapping[str, int]  # by state
    runs: Mapping[str, int]  # by result; "open" for those that still run
    evolutions: Mapping[str, int]  # by state
    steps: int


def task_page(reader: Reader, limit: int, before: int = 0, **equal: str) -> ListPage[TaskView]:
    """Tasks with these columns (``state``, ``name``, ``schedule_id``), added before place ``before``."""
    rows = _page(reader, "task", limit, before, equal)
    views = [
        TaskView(from_text(Task, body), Share(share), TaskState(state)) for _, body, share, state in rows
    ]
    return ListPage(views[:limit], _older(rows, limit))


def run_page(reader: Reader, limit: int, before: int = 0, **equal: str) -> ListPage[Run]:
    """Runs with these columns (``task_id``, ``result``), begun before place ``before``."""
    rows = _page(reader, "run", limit, before, equal)
    return ListPage([from_text(Run, body) for _, body in rows[:limit]], _older(rows, limit))


def evolution_page(reader: Reader, limit: int, before: int = 0, **equal: str) -> ListPage[Evolution]:
    """Evolutions with these columns (``state``, ``resource``), opened before place ``before``."""
    rows = _page(reader, "evolution", limit, before, equal)
    return ListPage([from_text(Evolution, body) for _, body in rows[:limit]], _older(rows, limit))


# Table -> its place in the order of coming in, and what else is read of a row.
_LISTED = {"task": ("no", "body, share, state"), "run": ("no", "body"), "evolution": ("seq", "body")}


def _page(
    reader: Reader, table: str, limit: int, before: int, equal: Mapping[str, str]
) -> list[tuple[Any, ...]]:
    place, columns = _LISTED[table]
    given = [(name, value) for name, value in equal.items() if value]
    clauses = [f"{name} = ?" for name, _ in given] + ([f"{place} < {before:d}"] if before else [])
    where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
    sql = f"SELECT {place}, {columns} FROM {table} {where} ORDER BY {place} DESC LIMIT {limit + 1:d}"
    return reader._rows(sql, *(value for _, value in given))


def _older(rows: Sequence[tuple[Any, ...]], limit: int) -> int:
    return int(rows[limit - 1][0]) if len(rows) > limit else 0


def state_counts(reader: Reader, table: str) -> Mapping[str, int]:
    """How many tasks or evolutions stand in each state; read from the index alone."""
    if table not in ("task", "evolution"):
        raise TypeError(f"{table} has no states")
    rows = reader._rows(f"SELECT state, count(*) FROM {table} GROUP BY state")
    return {str(state): int(count) for state, count in rows}


def counts(reader: Reader) -> LedgerCounts:
    """Totals for a status line."""
    by = "SELECT {0}, count(*) FROM {1} GROUP BY {0}"
    tasks, runs, evolutions = (
        {str(key or "open"): int(count) for key, count in reader._rows(by.format(column, table))}
        for column, table in (("state", "task"), ("result", "run"), ("state", "evolution"))
    )
    # max(no) instead of count(*): steps are never removed, and counting reads the whole table
    ((steps,),) = reader._rows("SELECT coalesce(max(no), 0) FROM step")
    return LedgerCounts(tasks, runs, evolutions, int(steps))


def newest_open_runs(reader: Reader, limit: int) -> Sequence[Run]:
    """Runs without an end, newest first."""
    # ``+no``: else SQLite walks the whole table from its end, for rows that are few
    rows = reader._rows(f"SELECT body FROM run WHERE result IS NULL ORDER BY +no DESC LIMIT {limit:d}")
    return [from_text(Run, body) for (body,) in rows]


def failure_groups(reader: Reader, limit: int) -> Sequence[FailureGroup]:
    """Failures by fingerprint, the one that was seen last first."""
    rows = reader._rows(
        f"SELECT count(*), min(seq), max(seq) FROM sighting WHERE {SEEN} "
        f"GROUP BY fingerprint ORDER BY max(seq) DESC LIMIT {limit:d}"
    )
    return [_group(reader, *row) for row in rows]


def failure_group(reader: Reader, fingerprint_id: str) -> FailureGroup:
    """One of them. Raises NotFound, also for a failure of hidden work alone."""
    ((count, first, last),) = reader._rows(
        f"SELECT count(*), min(seq), max(seq) FROM sighting WHERE fingerprint = ? AND {SEEN}", fingerprint_id
    )
    if not count:
        raise NotFound(
            f"there is no failure {fingerprint_id[:60]!r}: type `agentos failure list` to see them"
        )
    return _group(reader, count, first, last)


def _group(reader: Reader, count: int, first: int, last: int) -> FailureGroup:
    """By its oldest and newest sighting; of a run that was graded again the newest may have been seen before."""
    old, new = (_sighting(reader, seq) for seq in (first, last))
    at = sorted((old.seen_at, new.seen_at))
    return FailureGroup(new.fingerprint, int(count), at[0], at[1])


def failures_by_day(reader: Reader, fingerprint_id: str, since: datetime) -> Mapping[str, int]:
    """How often it was seen on each day (of UTC, as ``2026-01-31``) from ``since`` on, without hidden work."""
    day = "substr(json_extract(body, '$.seen_at'), 1, 10)"
    rows = reader._rows(
        f"SELECT {day}, count(*) FROM (SELECT body FROM sighting WHERE fingerprint = ? ORDER BY seq DESC "
        f"LIMIT {_DAYS_MAX}) AS newest WHERE {SEEN} AND {day} >= ? GROUP BY {day}",
        fingerprint_id,
        f"{since:%Y-%m-%d}",
    )
    return {str(at): int(count) for at, count in rows}


def odd_cursors(reader: Reader, prefix: str) -> frozenset[str]:
    """What stands behind the prefix in the names of cursors whose position is odd."""
    sql = "SELECT substr(name, length(?1) + 1) FROM cursor WHERE name > ?1 AND name < ?1 || '~' AND position % 2 <> 0"
    return frozenset(str(name) for (name,) in reader._rows(sql, prefix))


def sightings_of(reader: Reader, fingerprint_id: str, limit: int) -> Sequence[Sighting]:
    """The newest sightings of a fingerprint, newest first; without those of hidden work."""
    sql = f"SELECT body FROM sighting WHERE fingerprint = ? ORDER BY seq DESC LIMIT {limit:d}"
    found = [from_text(Sighting, body) for (body,) in reader._rows(sql, fingerprint_id)]
    return [item for item in found if not item.hidden]


def _sighting(reader: Reader, seq: int) -> Sighting:
    ((body,),) = reader._rows("SELECT body FROM sighting WHERE seq = ?", seq)
    return from_text(Sighting, body)


def tasks_with(reader: Reader, text: str, limit: int) -> Sequence[TaskView]:
    """Of the newest tasks those whose name has the text in it, newest first."""
    sql = (
        "SELECT body, share, state FROM task WHERE no > (SELECT coalesce(max(no), 0) FROM task) - ? "
        f"AND instr(lower(name), ?) > 0 ORDER BY no DESC LIMIT {limit:d}"
    )
    rows = reader._rows(sql, _SCAN_MAX, _lowered(text))
    return [TaskView(from_text(Task, body), Share(share), TaskState(state)) for body, share, state in rows]


def evolutions_with(reader: Reader, text: str, limit: int) -> Sequence[Evolution]:
    """Evolutions whose resource has the text in it, newest first."""
    sql = f"SELECT body FROM evolution WHERE instr(resource, ?) > 0 ORDER BY seq DESC LIMIT {limit:d}"
    return [from_text(Evolution, body) for (body,) in reader._rows(sql, _lowered(text))]


def _lowered(text: str) -> str:
    """As ``lower`` has it of a column, in either database: ASCII alone. Of a value PostgreSQL goes by its own locale."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


def last_step(reader: Reader, run_id: str) -> int:
    """The index of the newest step of a run, -1 without any."""
    ((last,),) = reader._rows("SELECT coalesce(max(position), -1) FROM step WHERE run_id = ?", run_id)
    return int(last)


def data_version(reader: Reader) -> tuple[int, ...]:
    """Another value after anything was written that a list shows: tasks, runs, decisions."""
    sql = (
        "SELECT (SELECT max(no) FROM task), (SELECT max(no) FROM run), (SELECT max(seq) FROM run), "
        "(SELECT max(seq) FROM audit)"
    )
    (row,) = reader._rows(sql)
    return tuple(int(value or 0) for value in row)


# -------------------------------------------------------------------------------------------------
# Totals over the whole ledger, for the page on its health: added up by SQLite, no record is read for
# them.


# ruff: noqa: S608 - what is put in are constants of this module


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
