"""What schedules write: the inputs of their copies, what they skipped, and the files that arrived."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from agentos.domain import Json, Share, SkippedRun, Task, TaskState
from agentos.errors import Conflict
from agentos.ledger.rows.codec import to_text
from agentos.ledger.store import Ledger


def give_inputs(ledger: Ledger, task: Task, share: Share, detail: Json) -> None:
    """Store the task with its live inputs read. Raises Conflict when it waits for none any more."""
    with ledger._writing() as connection:
        (state,) = connection.execute("SELECT state FROM task WHERE id = ?", (task.id,)).fetchone() or (None,)
        if state != TaskState.QUEUED:
            raise Conflict(f"the task {task.id} is {state}: its inputs are as they are")
        changed = (task.key, share.value, to_text(task), task.id)
        connection.execute("UPDATE task SET task_key = ?, share = ?, body = ? WHERE id = ?", changed)
        ledger._note("task.inputs_read", task.id, detail)


def skip(ledger: Ledger, schedule_id: str, reason: str, at: datetime) -> None:
    """Record that a time started nothing; the same reason again counts up."""
    (newest,) = ledger.newest(SkippedRun, 1, schedule_id=schedule_id) or (None,)
    if newest is None or newest.reason != reason:
        ledger.put(SkippedRun(f"{schedule_id}-{at:%Y%m%d%H%M%S%f}", schedule_id, reason, at, at))
    elif newest.last_at < at:
        times = newest.times + 1
        ledger.put(SkippedRun(newest.id, schedule_id, reason, newest.first_at, at, times))


def set_arrivals(
    ledger: Ledger, schedule_id: str, seen: Mapping[str, str], gone: Collection[str] = ()
) -> None:
    """Remember these signatures, and forget the files that are gone."""
    if not seen and not gone:
        return
    with ledger._writing() as connection:
        connection.executemany(
            "DELETE FROM arrival WHERE schedule_id = ? AND path = ?", ((schedule_id, path) for path in gone)
        )
        connection.executemany(
            "INSERT INTO arrival (schedule_id, path, signature) VALUES (?, ?, ?) "
            "ON CONFLICT (schedule_id, path) DO UPDATE SET signature = excluded.signature",
            ((schedule_id, path, signature) for path, signature in seen.items()),
        )
