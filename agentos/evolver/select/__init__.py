"""Which tasks take part in an evolution: evidence, guards, hold-out, and the tests that a rewrite inherits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agentos.evolver.find import HoldBackContext
from agentos.evolver.history import HistoryContext
from agentos.evolver.states import EvolutionReader

if TYPE_CHECKING:
    from agentos.evolver.policy import Policy
    from agentos.ports import Blobs, Evolvable, Journal, Records


class RenamingContext(Protocol):
    """What a task is put in other names with."""

    blobs: Blobs
    consent_key: bytes


class LooksContext(EvolutionReader, Protocol):
    """What looks at the hold-out are counted with."""

    journal: Journal
    policy: Policy
    records: Records


class SelectionContext(LooksContext, HistoryContext, HoldBackContext, Protocol):
    """What evidence, guards and hold-out are chosen with."""

    blobs: Blobs


class InheritanceContext(SelectionContext, Protocol):
    """What the tests are found with that a rewrite inherits."""

    evolvable: Evolvable
