"""Memories as lists of lessons: what changes in them, what runs propose, how they move to a new form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agentos.domain import Json
from agentos.evolver.states import Clock

if TYPE_CHECKING:
    from agentos.evolver.policy import Policy
    from agentos.ports import Audit, Evolvable, Records, Snapshots


@dataclass(frozen=True, slots=True)
class MigrationResult:
    """What a harness' ``migrate.py`` returned in a box, unchecked; ``fault`` says why it returned nothing."""

    output: Json = None
    fault: str = ""


class MigrationContext(Protocol):
    """What memories are brought to another form with."""

    evolvable: Evolvable
    policy: Policy
    snapshots: Snapshots

    def migrate(
        self, files: Mapping[str, bytes], path: str, memories: Mapping[str, str], /
    ) -> MigrationResult:
        """Call ``migrate`` of a file (second argument) among a harness' files in a box, with texts by memory."""
        ...


class MemoryProposalContext(Clock, Protocol):
    """What proposals of runs are settled with."""

    audit: Audit
    evolvable: Evolvable
    policy: Policy
    records: Records
    snapshots: Snapshots
