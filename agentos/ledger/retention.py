"""What a home need not keep for ever: steps and files of old runs, what their tasks were given, trajectories of trials.

Tasks as they were asked, outcomes, evidence with its runs, verdicts with their trials and the audit chain stay. What goes is
looked at once more before: a run that is not what its audit entry was made of keeps its steps, so that nobody can have
a change of his forgotten. The entry ``retention.pruned`` then stands for the digests that can no longer be
made: it has one digest of all the runs' records, which ``audit verify`` makes again.
"""

# ruff: noqa: S608 - names of tables and columns come from the schema or this package; values are bound

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from agentos.domain import Json, dataclass
from agentos.ledger.audit import PrunedTotals, Rows
from agentos.ledger.rows.codec import data_of, plain, time_text
from agentos.ledger.rows.dictionary import spread
from agentos.ledger.rows.record_types import RECORDS, RUN_ENDS, of_run, of_set

BATCH = 500  # runs in one transaction
NEWEST_OF_EACH = 200  # runs of each resource that keep their steps: what guards are replayed from
# Newest sightings, and of these those of one failure, whose runs may become evidence when it recurs.
_SIGHTINGS, _ALIKE = 1_000, 8
_NAME = re.compile(rb"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class PruneBatch:
    """One batch of runs. ``kept`` are those among them that keep all they have."""

    from_seq: int
    to_seq: int
    runs: tuple[str, ...]
    kept: tuple[str, ...]
    sha256: str

    @property
    def detail(self) -> dict[str, Json]:
        """What the audit entry says."""
        span = {"from_seq": self.from_seq, "to_seq": self.to_seq, "runs": len(self.runs)}
        return {**span, "kept": list(self.kept), "sha256": self.sha256}


def covered_to(rows: Rows) -> int:
    """The newest ``seq`` of a run that retention has been at; 0 for none."""
    ((found,),) = rows("SELECT max(to_seq) FROM pruned")
    return int(found or 0)


def last_before(rows: Rows, before: datetime) -> int:
    """The ``seq`` of the newest run that had ended by then; 0 for none."""
    ((newest,),) = rows(
        "SELECT max(seq) FROM run WHERE seq IS NOT NULL AND finished_at < ?", time_text(before)
    )
    return int(newest or 0)


def ended_later(rows: Rows, before: datetime, to_seq: int) -> frozenset[str]:
    """Runs up to ``to_seq`` that had not ended by then, as far as their time is true: a clock was wrong once.

    They keep what they have, and hold up nothing that came after them.
    """
    sql = "SELECT id FROM run WHERE seq <= ? AND finished_at >= ?"
    return frozenset(name for (name,) in rows(sql, to_seq, time_text(before)))


def protected_runs(rows: Rows) -> frozenset[str]:
    """Runs that keep all they have, however old they are.

    Of evidence and of failures that may become some, those that a person spoke of, those of tasks that are not over and
    of trials of evolutions that are not, and what guards come from: of each resource the newest runs, and the newest of
    other work each.
    """
    found: set[str] = set()
    for (body,) in rows("SELECT body FROM evidence"):
        found.update(data_of(body).get("run_ids") or ())
    for sql in (
        "SELECT run_id FROM flag UNION SELECT run_id FROM feedback",
        "SELECT run.id FROM task JOIN run ON run.task_id = task.id WHERE task.state NOT IN ('done', 'cancelled')",
    ):
        found.update(name for (name,) in rows(sql))
    seen = (
        "SELECT run_id, row_number() OVER (PARTITION BY fingerprint ORDER BY seq DESC) AS place FROM sighting "
        "WHERE seq > (SELECT max(seq) FROM sighting) - ?"
    )
    found.update(
        name for (name,) in rows(f"SELECT run_id FROM ({seen}) AS seen WHERE place <= ?", _SIGHTINGS, _ALIKE)
    )
    ended = dict(_ended(rows))
    for (evolution_id,) in rows("SELECT DISTINCT evolution_id FROM trial"):
        if not ended.get(evolution_id):
            tried = "SELECT task_id FROM trial WHERE evolution_id = ?"
            found.update(
                name for (name,) in rows(f"SELECT id FROM run WHERE task_id IN ({tried})", evolution_id)
            )
    place = "row_number() OVER (PARTITION BY resource ORDER BY {} DESC)"
    newest = f"SELECT seq, {place.format('seq')} AS place FROM run_resource"
    others = f"SELECT max(seq) AS seq, {place.format('max(seq)')} AS place FROM run_resource GROUP BY resource, task_key"
    for used in (newest, others):
        sql = f"SELECT run.id FROM ({used}) AS used JOIN run ON run.seq = used.seq WHERE used.place <= ?"
        found.update(name for (name,) in rows(sql, NEWEST_OF_EACH))
    return frozenset(found)


def batch_after(rows: Rows, after: int, to_seq: int, protected: frozenset[str]) -> PruneBatch | None:
    """The next runs up to ``to_seq``, None when there is none; nothing is changed."""
    sql = "SELECT seq, id, body FROM run WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
    found = rows(sql, after, to_seq, BATCH)
    if not found:
        return None
    gone, kept = [], []
    for _, name, body in found:
        if name in protected or not _untouched(rows, name, body):
            kept.append(name)
        else:
            gone.append((name, body))
    texts = [plain(body) for _, body in gone]
    names = tuple(name for name, _ in gone)
    return PruneBatch(found[0][0], found[-1][0], names, tuple(kept), of_set(texts))


def spoken_of(rows: Callable[..., Iterable[Sequence[Any]]], runs: Sequence[str]) -> str:
    """One of the runs that a person spoke of, "" for none: also since it was looked at whether they may go."""
    marks = ", ".join("?" * len(runs))
    said = "SELECT run_id FROM {0} WHERE run_id IN ({1})".format
    sql = f"{said('flag', marks)} UNION {said('feedback', marks)} LIMIT 1"
    return "".join(name for (name,) in rows(sql, *runs, *runs))


def _untouched(rows: Rows, run_id: str, body: str | bytes) -> bool:
    """Whether the run is what its audit entry says; one without a digest is of an earlier release."""
    sql = "SELECT event, detail FROM audit WHERE subject = ? ORDER BY seq DESC"
    for event, detail in rows(sql, run_id):
        if event not in RUN_ENDS:
            continue
        said = data_of(detail).get(RECORDS, {}).get(f"run/{run_id}")
        return said is None or said == of_run(rows, run_id, body)
    return False


def old_evolutions(rows: Rows, before: datetime) -> frozenset[str]:
    """Evolutions that had ended by then: the trajectories of their trials may go, the trials stay."""
    at = time_text(before)
    return frozenset(name for name, moment in _ended(rows) if moment and moment < at)


def _ended(rows: Rows) -> Iterator[tuple[str, str | None]]:
    """Each evolution, and when it ended."""
    for name, body in rows("SELECT id, body FROM evolution"):
        yield name, data_of(body).get("ended_at")


def tasks_without_inputs(rows: Rows, gone: PrunedTotals) -> frozenset[str]:
    """Tasks whose runs are all pruned: what they were given has gone with these."""
    found, needed = set[str](), set[str]()
    for name, task_id, seq in rows("SELECT id, task_id, seq FROM run"):
        (found if seq is not None and gone.range_with(name, seq) else needed).add(task_id)
    return frozenset(found - needed)


def still_named(
    rows: Rows, tables: Mapping[str, Iterable[Mapping[str, Any]]], blobs: frozenset[str], gone: PrunedTotals
) -> set[str]:
    """Those of ``blobs`` that any row of any of the ``tables`` speaks of, but for what is pruned.

    Every column of every table is looked through for the names, whatever the table is for: one that a later release
    brings is then safe as well.
    """
    found: set[str] = set()
    wanted = {name.encode() for name in blobs}
    idle = tasks_without_inputs(rows, gone)
    for table, content in tables.items():
        if table in ("audit", "run_resource"):  # digests of records, and keys: they name no blob
            continue
        for fields in content:
            if not (table == "task" and fields["id"] in idle) and not _is_gone(table, fields, gone):
                for value in fields.values():
                    if isinstance(value, (str, bytes)):
                        found |= {
                            name.decode() for name in wanted.intersection(_NAME.findall(_readable(value)))
                        }
    return found


def _is_gone(table: str, row: Mapping[str, Any], gone: PrunedTotals) -> bool:
    if table in ("trial", "trial_pack"):
        return row["evolution_id"] in gone.evolutions
    if table == "step":
        return row["run_id"] in gone.runs
    return table == "run" and row["seq"] is not None and gone.range_with(row["id"], row["seq"]) is not None


def _readable(value: str | bytes) -> bytes:
    if isinstance(value, str):
        return value.encode()
    with suppress(zlib.error):
        return spread(value)
    return value
