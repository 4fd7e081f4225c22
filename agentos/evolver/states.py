"""What the stages ask of the time, of an evolution's own record and of the tasks it is about; and how one is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from agentos.errors import Conflict, ErrorKind
from agentos.records.evolution import AT_WORK, Evolution

if TYPE_CHECKING:
    from datetime import datetime

    from agentos.evolver.policy import Policy
    from agentos.ports import Audit, Cursor, Journal, Records, Snapshots
    from agentos.records.evolution import EvolutionEnding, EvolutionState
    from agentos.records.tasks import Task


class Clock(Protocol):
    """The time, of which a test makes its own."""

    def now(self) -> datetime:
        """The time."""
        ...


class TaskReader(Protocol):
    """Tasks by their ids."""

    journal: Journal

    def tasks(self, ids: tuple[str, ...]) -> list[Task]:
        """The tasks with these ids, in this order."""
        ...


class ReadContext(Protocol):
    """What runs are read with, and whether others may see them."""

    cursor: Cursor
    journal: Journal
    policy: Policy


class EvolutionReader(Protocol):
    """An evolution by its id."""

    def evolution(self, evolution_id: str) -> Evolution:
        """The evolution's present state; raises NotFound."""
        ...


class EvolutionStates(EvolutionReader, Protocol):
    """Where evolutions stand, and the only way to open one and to move one on."""

    def opened(self, evidence_id: str, fingerprint_id: str, reason: str = "") -> Evolution:
        """One against what is stable now; not stored yet."""
        ...

    def taken_back(self, files: Mapping[str, str]) -> str:
        """Why this very edit is not tried again: it was promoted once and taken back, or failed its probe."""
        ...

    def move(
        self,
        evolution: Evolution,
        state: EvolutionState,
        reason: str = "",
        *,
        end: bool = False,
        ending: EvolutionEnding = ...,
    ) -> Evolution:
        """Store a new state (``end`` also sets the time of the end), and note in the audit log where it waits or ends.

        Stages under way stand in the record alone, with their times. Raises Conflict when it ended meanwhile by another's hand: its record would be put back to what it was.
        """
        ...


class RecordContext(Clock, Protocol):
    """What is put on record with: an evolution on the stable snapshot, a word on one that may drive runs."""

    audit: Audit
    records: Records
    snapshots: Snapshots


class RetryContext(EvolutionStates, Protocol):
    """What a failure's evidence is taken up again with."""

    audit: Audit
    records: Records


def retry(parts: RetryContext, evolution: Evolution, *, takes_up: str = "") -> Evolution:
    """Open a new evolution on the same evidence, against what is stable now.

    ``takes_up``: the candidate whose edit is measured again there, where it still applies.

    Raises Conflict when one is at work on it already: two would measure and ask the same twice.
    """
    for other in parts.records.find(Evolution, evidence_id=evolution.evidence_id):
        if other.state in AT_WORK:
            raise Conflict(
                f"{other.id} is at work on the same evidence ({other.state.value}); "
                f"`agentos evolution show {other.id}` shows how far it is.",
                kind=ErrorKind.AT_WORK,
            )
    why = f"takes up {evolution.id} again"
    fresh = replace(parts.opened(evolution.evidence_id, evolution.fingerprint_id, why), takes_up=takes_up)
    parts.audit.note("evolution.reconsider", fresh.id, {"of": evolution.id}, (fresh,))
    return fresh
