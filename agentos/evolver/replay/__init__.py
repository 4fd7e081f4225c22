"""The same tasks on base and candidate, in fresh boxes; and the same trials once more from their records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agentos.evolver.find import InspectContext
from agentos.evolver.history import HistoryContext
from agentos.evolver.select import LooksContext, RenamingContext
from agentos.evolver.states import Clock, TaskReader

if TYPE_CHECKING:
    from agentos.ports import Blobs, Cursor, Executor, Journal, Replayer, Snapshots


class ReplayContext(InspectContext, RenamingContext, LooksContext, TaskReader, Protocol):
    """What trials are made and stored with."""

    executor: Executor
    replayer: Replayer

    def image_of(self, sandbox: str, /) -> str:
        """What boxes of a sandbox are made of now, as ``Trial.image``."""
        ...

    def distrusted(self, host: str, /) -> str:
        """Why trials that this worker measured count for nothing, "" where they do."""
        ...


class FreshContext(ReplayContext, HistoryContext, Protocol):
    """What work that came since is looked for and tried with."""

    cursor: Cursor


class RerunContext(Clock, Protocol):
    """What one recorded run is gone through again with."""

    blobs: Blobs
    executor: Executor
    journal: Journal
    snapshots: Snapshots
