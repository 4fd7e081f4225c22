"""Tasks with a cron line: each time it is due, a copy of the task is queued.

A time that passed while no daemon ran is made up for once, however many were missed. Times are
local, as cron's are.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from croniter import croniter

from agentos.domain import Share, Task
from agentos.ledger.store import Ledger


def spawn_due(ledger: Ledger, task: Task, share: Share, now: datetime) -> str | None:
    """Queue the copy that is due, if one is; its id. Safe to repeat: the id is made of the time."""
    if task.schedule is None:
        return None
    local = now.astimezone()
    due: datetime = croniter(task.schedule, local).get_prev(datetime)
    key = f"schedule:{task.id}"
    last = datetime.fromisoformat(ledger.get_kv(key, task.created_at.isoformat()))
    if due <= last:
        return None
    copy = replace(task, id=f"{task.id}-{due:%Y%m%d%H%M}", schedule=None, created_at=due)
    ledger.add_task(copy, share)
    ledger.set_kv(key, due.isoformat())
    return copy.id
