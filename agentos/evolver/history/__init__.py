"""What earlier runs and evolutions left on record: recordings, what proposers achieved, what was observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agentos.evolver.states import Clock, ReadContext, TaskReader

if TYPE_CHECKING:
    from agentos.domain import Layer
    from agentos.evolver.policy import Policy
    from agentos.ports import Cursor, Evolvable, Journal, Records, Snapshots

# When predictions were held against what was observed: by the replay, and by live use.
AT_PROMOTION, AFTER_PROBATION = "promotion", "probation"


class HistoryContext(ReadContext, TaskReader, Protocol):
    """What is looked up of earlier runs and evolutions."""

    records: Records
    snapshots: Snapshots
    winners: dict[str, tuple[str, Layer]]  # by promoted candidate, its proposer: filled as it is asked for


class RetirementContext(Clock, Protocol):
    """What unused skills are found with."""

    cursor: Cursor
    evolvable: Evolvable
    journal: Journal
    policy: Policy
    snapshots: Snapshots
