"""What a command that follows a run or an evolution says while a model takes its time or is away, or a task its turn."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from agentos.cli.output import clean, counted, tell_progress
from agentos.domain import Result, Run, TaskState
from agentos.home import Home

if TYPE_CHECKING:
    from agentos.daemon.upkeep.status import DaemonStatus
    from agentos.gateway.calls import ProviderCall
    from agentos.ledger.reading import Reader

_TELL_S = 5.0
_COUNTED = 100  # running tasks, at most
_QUEUED = 100_000  # ids, at most


class ModelWaits:
    """Tells whoever waits at a terminal which model is being asked, every few seconds."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._told = time.monotonic()
        self._lost: set[str] = set()

    def tell_task(self, reader: Reader, task_id: str, run: Run | None) -> None:
        """Of a task with its newest run, if there is one yet."""
        if run is None:
            self.tell_queued(reader, task_id)
        else:
            self.tell_run(run)

    def tell_run(self, run: Run) -> None:
        """Which model a run asks; or why the machinery lost it, once for each reason: its task is tried again and again."""
        if run.outcome is None:
            self.tell(run.id)
        elif run.outcome.result is Result.INFRA and run.outcome.reason not in self._lost:
            self._lost.add(run.outcome.reason)
            said = f"    lost: {run.outcome.reason[:300]} (it is tried again; Ctrl-C leaves it in the queue)"
            print(clean(said), file=sys.stderr, flush=True)

    def tell_queued(self, reader: Reader, task_id: str) -> None:
        """Why a task has no run yet, if it is time."""
        if time.monotonic() - self._told < _TELL_S:
            return
        from agentos.daemon.upkeep.status import daemon_status

        self._told = time.monotonic()
        ahead = before(reader, task_id)
        tell_progress(f"    queued: {held_up_by(daemon_status(self._home), task_id, ahead)}")

    def tell(self, work_id: str) -> bool:
        """Say which call of a run or an evolution is under way, if one is and it is time; whether it did."""
        if time.monotonic() - self._told < _TELL_S or not self._home.calls.exists():
            return False
        from agentos.gateway.calls import CallReading
        from agentos.gateway.setup import read_ending

        self._told = time.monotonic()
        if (ending := read_ending(self._home.run)) is not None:
            tell_progress(f"    {ending.says}")
            return True
        reading = CallReading(self._home.calls)
        try:
            found = reading.under_way(work_id)
        finally:
            reading.close()
        if found:
            tell_progress(sentence_of(found[0], time.time()))
        return bool(found)


def before(reader: Reader, task_id: str) -> int:
    """How many tasks are under way, or were queued before this one."""
    queue = reader.queued(_QUEUED)
    running = len(reader.tasks(TaskState.RUNNING, _COUNTED))
    return running + (queue.index(task_id) if task_id in queue else 0)


def held_up_by(status: DaemonStatus, task_id: str, ahead: int) -> str:
    """What a queued task waits for: its own obstacle, the daemon's, else its turn."""
    own = next((item.why for item in status.waiting if item.task == task_id), "")
    turn = f"{counted(ahead, 'task')} before it" if ahead else "its turn comes next"
    return own or status.why or turn


def sentence_of(call: ProviderCall, now: float) -> str:
    """Whom a call asks, how much, and for how long it has waited; ``now`` in seconds since 1970."""
    return f"    asking {call.model}: about {call.input_tokens:,} tokens, {max(0.0, now - call.started_at):.0f} s"
