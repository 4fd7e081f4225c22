"""Schedules: when one is due, a copy of its task is queued, with what its inputs hold at that time.

A time that passed while no daemon ran or the machine slept is made up for once, however many were missed, or
not at all, as the schedule says. Why a time started nothing is on record.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from agentos.daemon.job.inputs import empty_reason, read_live
from agentos.daemon.scheduling.clock import due_before
from agentos.daemon.standing_checks import with_accepted
from agentos.domain import Share, Task, TaskState, Trigger, share_of
from agentos.errors import Conflict, Invalid, UserError
from agentos.ledger.reading import Reader, TaskView
from agentos.ledger.schedules import has_task, is_under_way, skip
from agentos.ledger.store import Ledger

LATE = timedelta(seconds=60)  # beyond which a time counts as missed, and a clock as put back


def spawn_due(ledger: Ledger, task: Task, share: Share, now: datetime, hold_out: float = 0.0) -> str | None:
    """Queue the copy that is due, if one is; its id. Safe to repeat: the id is made of the time."""
    if task.schedule is None:
        return None
    due = due_before(task.schedule, _trigger(task).timezone, now)
    last = last_due(ledger, task)
    if due is None or due == last or (due < last and last <= now):
        return None
    if last > now:  # the clock was put back: what comes from here on is due again
        if last - now > LATE:
            ledger.set_kv(f"schedule.again:{task.id}", [last.isoformat(), f"{now:%Y%m%d%H%M%S}"])
        _remember(ledger, task, due)
        return None
    copy_id = f"{task.id}-{due:%Y%m%d%H%M}" + (f"{due:%S}" if due.second else "")
    until, since = ledger.get_kv(f"schedule.again:{task.id}", ["", ""])
    if until and due <= datetime.fromisoformat(until):  # the clock has shown this time before
        copy_id += f"-{since}"
    started: str | None = copy_id
    if not has_task(ledger, copy_id):  # a daemon that died may have come so far
        reason = _passed_over(ledger, task, due, now)
        if not reason:
            started, reason = start_copy(ledger, copy_of(task, copy_id, now), share, hold_out)
        if reason:
            started = None
            skip(ledger, task.id, reason, due)
    _remember(ledger, task, due)
    return started


def _passed_over(reader: Reader, task: Task, due: datetime, now: datetime) -> str:
    """Why nothing is started at a time that is due, "" if something is."""
    if _trigger(task).missed == "skip" and now - due > LATE:
        return "no daemon ran or the machine slept at that time (`missed: skip`)"
    if is_under_way(reader, task.id):
        return "the run before it had not ended"
    return ""


def copy_of(task: Task, copy_id: str, now: datetime) -> Task:
    """What a schedule starts: the same task, once."""
    trigger = task.trigger  # kept for its time zone, by which results are named
    trigger = replace(trigger, watch=None) if trigger else None
    return replace(task, id=copy_id, schedule=None, created_at=now, schedule_id=task.id, trigger=trigger)


def start_copy(
    ledger: Ledger, copy: Task, share: Share, hold_out: float, *, even_if_empty: bool = False
) -> tuple[str | None, str]:
    """Queue a copy of a schedule with its inputs read: its id, and why there is nothing to do, or "".

    Where there is nothing no copy is queued, but for ``even_if_empty``.

    Inputs that cannot be read are left to the copy, whose run says so and ends as ``infra``.
    """
    live = bool(copy.sources)
    copy = with_accepted(ledger, copy)
    reason = ""
    if copy.sources:
        try:
            found, reading = read_live(ledger, copy)
        except Invalid:
            found = copy
        else:
            reason = empty_reason(copy, reading)
            if reason and not even_if_empty:
                return None, reason
            share = share_of(found.key, hold_out)
            left_out = {"left_out": reading.left_out}
        copy = found
    ledger.add_task(copy, share)
    if live and not copy.sources:
        files = {file.path: file.sha256 for file in copy.inputs}
        ledger.note("task.inputs_read", copy.id, {"schedule": copy.schedule_id, "files": files, **left_out})
    return copy.id, reason


def run_now(ledger: Ledger, view: TaskView, now: datetime, hold_out: float) -> tuple[str, str]:
    """Queue a copy beside those that are due, at a person's wish: its id, and why it finds nothing to do, or "".

    Raises UserError for a watched folder."""
    task = view.task
    if task.trigger is not None and task.trigger.watch is not None:
        raise UserError(
            f"{task.id} runs for each file that arrives: put one into {task.trigger.watch.folder}."
        )
    copy_id = f"{task.id}-{now:%Y%m%d%H%M%S%f}"
    _, empty = start_copy(ledger, copy_of(task, copy_id, now), view.share, hold_out, even_if_empty=True)
    return copy_id, empty


def last_due(reader: Reader, task: Task) -> datetime:
    """The last time that was dealt with; at first when it was added."""
    return datetime.fromisoformat(reader.get_kv(f"schedule:{task.id}", task.created_at.isoformat()))


def pause(ledger: Ledger, task: Task) -> None:
    """No copy from here on. Raises Conflict for what is not scheduled."""
    _move(ledger, task, TaskState.SCHEDULED, TaskState.PAUSED, "paused")


def resume(ledger: Ledger, task: Task, now: datetime) -> None:
    """Copies again, from the next time on: what passed during the pause is not made up for."""
    if ledger.task_view(task.id).state is TaskState.PAUSED:  # else a time that is due now would be forgotten
        _remember(ledger, task, now)
    _move(ledger, task, TaskState.PAUSED, TaskState.SCHEDULED, "resumed")


def _move(ledger: Ledger, task: Task, before: TaskState, after: TaskState, what: str) -> None:
    if not ledger.set_task_state(task.id, (before,), after):
        state = ledger.task_view(task.id).state.value
        raise Conflict(f"{task.id} is {state}: only a schedule that is {before.value} can be {what}")
    ledger.note(f"schedule.{what}", task.id, {})


def _trigger(task: Task) -> Trigger:
    return task.trigger or Trigger()


def _remember(ledger: Ledger, task: Task, at: datetime) -> None:
    ledger.set_kv(f"schedule:{task.id}", at.astimezone(UTC).isoformat())
