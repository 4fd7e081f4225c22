"""Steps of a run on their way to the ledger: what belongs together is written together.

A transaction is a flush of the disk and most of a step's cost, and a task that names its tool makes half a dozen
steps in a few milliseconds. They wait here for the run's end, whose transaction takes them along, but

- a step of the kernel's own (a model's call, a request, a tool that acts on the outside, a person) is on disk, with
  all before it, when it is told of: nothing gets outside that the record does not know;
- what is a second old is written by the daemon's next turn: whoever follows the run sees it.

So a kill takes at most a second of work that stayed in the box, which the next attempt does again. A run without a
call has a model in it, whose next request rests on every step before: none of its steps waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence

from agentos.domain import Step

HELD_S = 1.0  # how long a step waits at most, but for the daemon's turn
HELD_MAX = 64  # steps at a time


class HeldSteps:
    """Of one run. Thread-safe; what ``write`` raises reaches who adds, and the steps stay here."""

    def __init__(self, write: Callable[[Sequence[Step]], None], at_once: Collection[str]) -> None:
        """``write`` stores steps in one transaction, again without harm; ``at_once`` are the kernel's nodes."""
        self._write = write
        self._at_once = at_once
        self._lock = threading.Lock()
        self._steps: list[Step] = []
        self._since = 0.0  # when the oldest of them came, on the monotonic clock

    def add(self, step: Step) -> None:
        """Take one; on disk when this returns, if it may not wait."""
        with self._lock:
            if not self._steps:
                self._since = time.monotonic()
            self._steps.append(step)
            if step.node in self._at_once or len(self._steps) >= HELD_MAX or self._old():
                self._flush()

    def write_old(self) -> None:
        """Write all, if the oldest has waited for long enough."""
        with self._lock:
            if self._steps and self._old():
                self._flush()

    def left(self) -> Sequence[Step]:
        """What is not written: for the transaction of the run's end."""
        with self._lock:
            return tuple(self._steps)

    def _old(self) -> bool:
        return time.monotonic() - self._since >= HELD_S

    def _flush(self) -> None:
        self._write(self._steps)
        self._steps = []
