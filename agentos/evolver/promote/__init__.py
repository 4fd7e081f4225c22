"""From a verdict to the stable pointer: consent, review, probe, promotion and its way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from agentos.evolver.guards.assurance import SuiteContext
from agentos.evolver.history import HistoryContext
from agentos.evolver.states import Clock, EvolutionStates, RecordContext

if TYPE_CHECKING:
    from agentos.domain import Candidate, Evolution, Refusal, SafetyRate, Verdict
    from agentos.evolver.policy import Policy
    from agentos.ports import (
        Adviser,
        Audit,
        Blobs,
        CandidateStore,
        Evolvable,
        Executor,
        Journal,
        Records,
    )


class CanaryContext(Protocol):
    """What past runs are made once more with."""

    blobs: Blobs
    executor: Executor
    journal: Journal
    policy: Policy


class ProbeContext(SuiteContext, CanaryContext, RecordContext, Protocol):
    """What is probed with before it drives runs."""

    def load(self, files: Mapping[str, bytes], tools: Sequence[str], /) -> Sequence[str]:
        """Import tool files (second argument) among a resource's files in a box: a sentence for each fault."""
        ...


class ReviewContext(Clock, HistoryContext, Protocol):
    """What a second model's review is asked for with."""

    audit: Audit
    reviewer: Adviser | None


class RebaseContext(RecordContext, Protocol):
    """What a candidate is moved to a new base with."""

    candidates: CandidateStore
    executor: Executor
    journal: Journal

    def measured(self, evolution: Evolution, candidate: Candidate, /) -> Sequence[SafetyRate]:
        """The rates of the safety probes, stored; raises Unavailable when the machinery failed."""
        ...


class ConsentContext(RecordContext, EvolutionStates, Protocol):
    """What a person's word on an evolution needs: no box."""

    candidates: CandidateStore
    consent_key: bytes
    policy: Policy

    def screened(self, candidate: Candidate, /) -> Refusal | None:
        """Why the guards of sources want a person to look at the edit; None where they do not."""
        ...

    def outgrown(self, candidate: Candidate, verdict: Verdict, /) -> Refusal | None:
        """Why the policy of now would not promote what another one let pass; None where it would."""
        ...


class PromotionContext(ConsentContext, ProbeContext, RebaseContext, HistoryContext, Protocol):
    """What the stable pointer is moved with."""

    evolvable: Evolvable

    def weakened(self, candidate: Candidate, /) -> Refusal | None:
        """Which rule of the home or of a touched skill it weakens, by the trees, whatever the edit says."""
        ...

    def image_of(self, sandbox: str, /) -> str:
        """What boxes of a sandbox are made of now, as ``Trial.image``."""
        ...

    def distrusted(self, host: str, /) -> str:
        """Why trials that this worker measured count for nothing, "" where they do."""
        ...


class RollBackContext(EvolutionStates, Protocol):
    """What a promotion is taken back with."""

    candidates: CandidateStore
    records: Records
