"""Guards that try a candidate with what the kernel brings along, and ask boxes who they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from agentos.evolver.states import Clock, TaskReader

if TYPE_CHECKING:
    from agentos.domain import ResourceId, Snapshot
    from agentos.evolver.policy import Policy
    from agentos.evolver.safety_probes import SafetyProbe
    from agentos.ports import Blobs, Executor, Records, Replayer, Snapshots


class ChallengeContext(Clock, Protocol):
    """What a harness is called in a box with, beside its trials."""

    policy: Policy
    snapshots: Snapshots

    def executor_with(self, files: Mapping[str, bytes], without: frozenset[ResourceId], /) -> Executor:
        """See ``safety_probes.ExecutorWith``."""
        ...


class SuiteContext(ChallengeContext, Protocol):
    """What the contract suite of harnesses runs with."""

    replayer: Replayer


class SafetyContext(SuiteContext, TaskReader, Protocol):
    """What safety probes are measured with."""

    blobs: Blobs
    records: Records
    safety_probes: tuple[SafetyProbe, ...]

    def has_model(self, snapshot: Snapshot, agent: str, /) -> bool:
        """Whether the agent may ask one on the snapshot."""
        ...
