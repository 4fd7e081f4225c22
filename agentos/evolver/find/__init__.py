"""Which finished runs failed, in which way, and which failures have become evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agentos.evolver.states import Clock, EvolutionStates, ReadContext, TaskReader

if TYPE_CHECKING:
    from agentos.domain import Layer
    from agentos.evolver.policy import Policy
    from agentos.ports import Audit, Cursor, Evolvable, Journal, Records, Snapshots


@dataclass(frozen=True, slots=True)
class FailureClass:
    """One class of the taxonomy of failures."""

    name: str
    faults: tuple[str, ...]
    layer: Layer
    evolvable: bool
    says: str


class InspectContext(Protocol):
    """What a run's failure is named with."""

    journal: Journal
    policy: Policy
    taxonomy: tuple[FailureClass, ...]


class MineContext(Clock, ReadContext, InspectContext, Protocol):
    """What finished runs are mined with."""

    audit: Audit


class HoldBackContext(TaskReader, Protocol):
    """What it is drawn with which evidence no proposer sees."""

    consent_key: bytes
    policy: Policy


class TriageContext(Clock, EvolutionStates, TaskReader, Protocol):
    """What evidence is sealed with, and evolutions are opened."""

    audit: Audit
    cursor: Cursor
    evolvable: Evolvable
    policy: Policy
    records: Records
    snapshots: Snapshots
    taxonomy: tuple[FailureClass, ...]
