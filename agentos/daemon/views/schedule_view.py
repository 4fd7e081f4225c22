"""What a screen or a page shows of a schedule: when it comes, and how its copies ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from agentos.domain import Run, Task, TaskState
from agentos.ledger.copies import copies
from agentos.ledger.reading import Reader, TaskView


def copies_with_runs(reader: Reader, schedule_id: str, limit: int) -> Sequence[tuple[TaskView, Run | None]]:
    """The newest copies of a schedule, each with its newest run; newest first."""
    found = []
    for view in copies(reader, schedule_id, limit):
        (newest,) = reader.runs(view.task.id, limit=1) or (None,)
        found.append((view, newest))
    return found


def ended(view: TaskView, run: Run | None) -> tuple[str, str]:
    """How a copy ended, or where it stands, and why."""
    if run is None or run.outcome is None or view.state is not TaskState.DONE:
        return view.state.value, ""
    return run.outcome.result.value, run.outcome.reason[:200]


def when_text(task: Task) -> str:
    """When it comes: its cron line, or the folder that it watches."""
    if task.trigger is not None and task.trigger.watch is not None:
        return f"each {task.trigger.watch.pattern} that arrives in {task.trigger.watch.folder}"
    zone = task.trigger.timezone if task.trigger else ""
    return f"{task.schedule}{f' ({zone})' if zone else ''}"


def next_due(task: Task) -> datetime | None:
    """When it comes next; None for one that watches a folder."""
    from agentos.daemon.scheduling.clock import due_after  # croniter, which lists of tasks do without

    zone = task.trigger.timezone if task.trigger else ""
    return due_after(task.schedule, zone, datetime.now(UTC)) if task.schedule else None
