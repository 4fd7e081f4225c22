"""Which work is hidden is in nothing that a command or the API tells: who reads it may write edits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from agentos.daemon.views.json_views import run_whole, task_facts, task_whole
from agentos.domain import Run, Share, Snapshot, Task
from agentos.ledger.store import Ledger
from agentos.plaintext import json_text


def test_a_task_with_runs_tells_not_whether_it_is_hidden(
    ledger: Ledger, make_task: Callable[..., Task]
) -> None:
    task = make_task("double", n=1)
    ledger.add_task(task, Share.HOLD_OUT)
    now = datetime.now(UTC)
    run = Run("run-1", task.id, task.key, Share.HOLD_OUT, 1, Snapshot("c", "t"), "fake", "none", now)
    ledger.begin_run(run)
    for told in (task_facts(ledger, task.id), task_whole(ledger, task.id), run_whole(ledger, run)):
        assert Share.HOLD_OUT.value not in json_text(told)
    assert task_facts(ledger, task.id)["runs"][0]["id"] == run.id
