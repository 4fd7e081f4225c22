"""What the ledger knows of schedules: their copies, and the files that arrived. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from agentos.domain import Result, TaskState
from agentos.ledger.reading import Reader, TaskView


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
