"""What a promotion does in live use, until it is settled or taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agentos.evolver.history import HistoryContext
from agentos.evolver.promote import RollBackContext
from agentos.evolver.states import Clock, EvolutionStates

if TYPE_CHECKING:
    from agentos.ports import Blobs, Evolvable, Executor


class WatchContext(Clock, HistoryContext, Protocol):
    """What live runs are looked at with."""


class ChangeContext(WatchContext, EvolutionStates, Protocol):
    """What later changes of a promoted resource are followed with."""

    evolvable: Evolvable


class ProbationContext(WatchContext, RollBackContext, Protocol):
    """What live runs are compared with, and a promotion that hurts is taken back."""

    blobs: Blobs
    executor: Executor
