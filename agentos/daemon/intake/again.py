"""The same work once more: a task of its own, with the inputs that the first one had."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

from agentos.domain import IMPORT, Task, new_id, share_of
from agentos.errors import UserError
from agentos.home import Home
from agentos.ledger.postgres.address import require_ledger
from agentos.ledger.store import Ledger
from agentos.settings import load_settings


def queue_again(home: Home, task_id: str) -> Task:
    """Queue a copy of the task, beside whatever schedule it came from; nothing is delivered by it.

    Raises NotFound, and UserError for what cannot be run here: a schedule itself, a part of another task, an import.
    """
    require_ledger(home.ledger)
    with closing(Ledger(home.ledger)) as ledger:
        task = ledger.task(task_id)
        if task.recurs:
            raise UserError(f"{task.id} is a schedule: `agentos schedule run {task.id}` runs it now.")
        if task.parent:
            raise UserError(f"{task.id} is part of {task.parent}: run that one again.")
        newest = ledger.runs(task.id, limit=1)
        if newest and newest[0].sandbox == IMPORT:
            raise UserError(
                f"{newest[0].id} was made elsewhere: `agentos task from-run` writes a task file from it."
            )
        if newest and ledger.is_pruned(newest[0]):
            raise UserError(
                f"What {newest[0].id} was given went with its steps, as [retention] in the settings says."
            )
        again = replace(
            task,
            id=new_id("task"),
            created_at=datetime.now(UTC),
            schedule=None,
            trigger=None,
            schedule_id="",
            deliver=(),
        )
        ledger.add_task(again, share_of(again.key, load_settings(home.settings).hold_out))
        ledger.note("task.again", again.id, {"of": task.id})
        return again
