"""From evidence to stored candidates: what a proposer may know, and what its edit must look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from agentos.evolver.diagnose import DiagnosisContext
from agentos.evolver.memory import MigrationContext
from agentos.evolver.select import SelectionContext
from agentos.evolver.states import Clock, EvolutionStates

if TYPE_CHECKING:
    from agentos.benches import Benches
    from agentos.domain import Layer
    from agentos.ports import Audit, CandidateStore, Proposer


class BriefContext(Clock, DiagnosisContext, SelectionContext, Protocol):
    """What a proposer is told is gathered with."""


class BehaviourContext(SelectionContext, Protocol):
    """What an edit is tried with beside what was shown."""

    benches: Benches | None


class ProposalContext(BriefContext, MigrationContext, EvolutionStates, Protocol):
    """What candidates are asked for, screened and stored with."""

    audit: Audit
    candidates: CandidateStore
    proposers: Mapping[Layer, tuple[Proposer, ...]]
