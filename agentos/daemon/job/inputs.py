"""Live inputs into the blobs: from then on a task is what its runs, replays and trials see."""

from __future__ import annotations

from dataclasses import replace

from agentos.domain import Share, Task, share_of
from agentos.ledger.schedules import give_inputs, last_read
from agentos.ledger.store import Ledger
from agentos.sources import SourceReading, read_sources


def read_live(ledger: Ledger, task: Task) -> tuple[Task, SourceReading]:
    """The task with what its sources hold now among its inputs. Raises Invalid with what cannot be read."""
    since = {}
    for name in {source.newer_than for source in task.sources} - {""}:
        at = last_read(ledger, task.schedule_id, passed=name == "last_pass") if task.schedule_id else None
        if at is not None and at <= task.created_at:  # else by a clock that was ahead: all is read once more
            since[name] = at.timestamp()
    reading = read_sources(
        task.sources,
        ledger.blobs.put,
        max_bytes=task.limits.workspace_mb << 20,
        since=since,
        given=task.inputs,
    )
    return replace(task, inputs=reading.inputs, sources=()), reading


def settle_inputs(ledger: Ledger, task: Task, hold_out: float) -> tuple[Task, Share]:
    """Read what a queued task waits for, and store it so. Raises Invalid, or Conflict when it was cancelled."""
    found, reading = read_live(ledger, task)
    share = share_of(found.key, hold_out)
    sources = [source.path for source in task.sources]
    files = {file.path: file.sha256 for file in found.inputs}
    give_inputs(ledger, found, share, {"sources": sources, "files": files, "left_out": reading.left_out})
    return found, share


def empty_reason(task: Task, reading: SourceReading) -> str:
    """Why there is nothing for it to do, "" if there is. Where sources name what is new, they decide."""
    if not task.sources or (task.trigger is not None and task.trigger.when_empty == "run"):
        return ""
    new = any(source.newer_than for source in task.sources)
    deciding = [
        (source, count)
        for source, count in zip(task.sources, reading.counts, strict=True)
        if source.newer_than or not new
    ]
    if any(count for _, count in deciding):
        return ""
    names = ", ".join(source.path for source, _ in deciding)
    return f"no {'new ' if new else ''}file in {names} (`when_empty: run` would run it)"
