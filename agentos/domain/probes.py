"""What trying a snapshot gave before runs were given it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agentos.domain.resources import Snapshot


@dataclass(frozen=True, slots=True)
class Pass:
    """One answer of one fresh box, beside one of the base in the same minute (0.0: there was none)."""

    boot: str  # drawn for this box; the answer named it
    agent: str
    start_s: float  # until the harness recorded its first step
    memory_mb: float  # the box's peak; 0.0 where it cannot be known
    base_start_s: float = 0.0
    base_memory_mb: float = 0.0


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of probing a snapshot. ``reason`` says why it did not pass, or who vouches for it.

    What is probed is how runs are driven, so another snapshot with the same harnesses, agents and
    environments (``driving_sha256``) has passed with it.
    """

    id: str
    snapshot: Snapshot
    driving_sha256: str
    passed: bool
    reason: str
    at: datetime
    evolution_id: str = ""  # "" where people changed the registry
    passes: tuple[Pass, ...] = ()
    canaries: tuple[str, ...] = ()  # ids of the tasks that were tried again
    seconds: float = 0.0
