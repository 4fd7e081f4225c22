"""What a promotion does in live use, until it is settled or taken back."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from agentos.evolver.history import HistoryContext
from agentos.evolver.promote import RollBackContext
from agentos.evolver.states import EvolutionStates

if TYPE_CHECKING:
    from agentos.ports import Blobs, Evolvable, Executor


class ChangeContext(HistoryContext, EvolutionStates, Protocol):
    """What later changes of a promoted resource are followed with."""

    evolvable: Evolvable


class ProbationContext(HistoryContext, RollBackContext, Protocol):
    """What live runs are compared with, and a promotion that hurts is taken back."""

    blobs: Blobs
    executor: Executor

    def now(self) -> datetime:
        """The time."""
        ...
