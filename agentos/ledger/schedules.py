"""What the ledger has of schedules: their copies, what they skipped, and the files that arrived.

Commands read it too, so what only a writer needs is imported for its types.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from agentos.domain import Json, Result, Share, SkippedRun, Task, TaskState
from agentos.errors import Conflict
from agentos.ledger.reading import Reader, TaskView
from agentos.ledger.rows.codec import to_text

if TYPE_CHECKING:
    from agentos.ledger.store import Ledger


def copies(reader: Reader, schedule_id: str, limit: int = -1) -> Sequence[TaskView]:
    """The tasks that the schedule started, newest first."""
    return _tasks(reader, "schedule_id = ?", schedule_id, limit=limit)


def without_copies(reader: Reader, state: TaskState | None, limit: int) -> Sequence[TaskView]:
    """The newest tasks that no schedule started, in the order they were added; in one state if given."""
    where, values = ("schedule_id = '' AND state = ?", (state.value,)) if state else ("schedule_id = ''", ())
    return _tasks(reader, where, *values, limit=limit)[::-1]


def _tasks(reader: Reader, where: str, *values: object, limit: int) -> list[TaskView]:
    return reader._tasks(f"WHERE {where} ORDER BY no DESC LIMIT {limit:d}", *values)


def last_read(reader: Reader, schedule_id: str, *, passed: bool) -> datetime | None:
    """When the newest copy (``passed``: of those that passed) began to read its inputs."""
    ran = "EXISTS (SELECT 1 FROM run WHERE run.task_id = task.id AND result = ?)"
    found = (
        _tasks(reader, f"schedule_id = ? AND {ran}", schedule_id, Result.PASSED.value, limit=1)
        if passed
        else _tasks(reader, "schedule_id = ?", schedule_id, limit=20)
    )
    # one that still has sources could not read them
    return next((view.task.created_at for view in found if not view.task.sources), None)


def is_under_way(reader: Reader, schedule_id: str) -> bool:
    """Whether a copy is queued or runs."""
    open_states = (TaskState.QUEUED.value, TaskState.RUNNING.value)
    return bool(_tasks(reader, "schedule_id = ? AND state IN (?, ?)", schedule_id, *open_states, limit=1))


def has_task(reader: Reader, id: str) -> bool:
    """Is there such a task?"""
    return bool(_tasks(reader, "id = ?", id, limit=1))


def arrivals(reader: Reader, schedule_id: str) -> Mapping[str, str]:
    """Files of the watched folder that were dealt with: their signatures by path."""
    rows = reader._rows("SELECT path, signature FROM arrival WHERE schedule_id = ?", schedule_id)
    return {str(path): str(signature) for path, signature in rows}


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
