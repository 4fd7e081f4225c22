"""What the evolver works with: the ports it was given, its policy, and the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agentos.domain import Evolution, EvolutionState, Layer, Task
from agentos.errors import Unavailable
from agentos.evolver.policy import FailureClass, Policy
from agentos.ports import (
    Audit,
    Blobs,
    CandidateStore,
    Cursor,
    Evolvable,
    Executor,
    Journal,
    Proposer,
    Records,
    Replayer,
    Snapshots,
)

# Imports tool files (second argument) among a resource's files in a box: a sentence for each fault.
Load = Callable[[Mapping[str, bytes], Sequence[str]], Sequence[str]]


def _no_load(files: Mapping[str, bytes], tools: Sequence[str]) -> Sequence[str]:
    raise Unavailable("Tools are loaded in the daemon; type `agentos daemon start`.")


@dataclass(frozen=True, slots=True)
class Parts:
    """Wired by the daemon with the real adapters, by tests with fakes."""

    snapshots: Snapshots
    candidates: CandidateStore
    evolvable: Evolvable
    records: Records
    journal: Journal
    cursor: Cursor
    audit: Audit
    blobs: Blobs
    executor: Executor
    replayer: Replayer
    proposers: Mapping[Layer, tuple[Proposer, ...]]
    policy: Policy
    taxonomy: tuple[FailureClass, ...]
    consent_key: bytes
    now: Callable[[], datetime]
    load: Load = _no_load

    def evolution(self, evolution_id: str) -> Evolution:
        """The evolution's present state; raises NotFound."""
        return self.records.get(Evolution, evolution_id)

    def tasks(self, ids: tuple[str, ...]) -> list[Task]:
        """The tasks with these ids, in this order."""
        return [self.journal.task(task_id) for task_id in ids]

    def move(
        self, evolution: Evolution, state: EvolutionState, reason: str = "", *, end: bool = False
    ) -> Evolution:
        """Store a new state (``end`` also sets the time of the end) and note it in the audit log."""
        moved = replace(
            evolution,
            state=state,
            reason=reason or evolution.reason,
            ended_at=self.now() if end else evolution.ended_at,
        )
        if moved != evolution:
            self.records.put(moved)
            self.audit.note(f"evolution.{state.value}", evolution.id, {"reason": reason})
        return moved
