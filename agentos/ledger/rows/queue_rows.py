"""Tasks and runs as rows: what stands in columns beside the record itself."""

from __future__ import annotations

from agentos.domain import Run, Share, Task, TaskState
from agentos.ledger.rows.codec import kept, time_text, to_text


def run_row(run: Run) -> dict[str, object]:
    """Of a run but for ``seq``, which is its place among those that are over."""
    return {
        "id": run.id,
        "task_id": run.task_id,
        "task_key": run.task_key,
        "share": run.share.value,
        "attempt": run.attempt,
        "commit_id": run.snapshot.commit,
        "result": run.outcome.result.value if run.outcome else None,
        "started_at": time_text(run.started_at),
        "finished_at": time_text(run.finished_at) if run.finished_at else None,
        "body": kept(to_text(run)),
    }


def task_row(task: Task, share: Share, state: TaskState) -> dict[str, object]:
    """Of a task."""
    return {
        "id": task.id,
        "name": task.name,
        "task_key": task.key,
        "share": share.value,
        "state": state.value,
        "agent": task.agent,
        "created_at": time_text(task.created_at),
        "parent": task.parent,
        "schedule_id": task.schedule_id,
        "body": kept(to_text(task)),
    }
