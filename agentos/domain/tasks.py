"""What is asked for: tasks with their inputs, limits and checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from agentos.domain.resources import Effect
from agentos.domain.schedules import Destination, InputSource, Trigger
from agentos.identity import Json, digest


@dataclass(frozen=True, slots=True)
class Call:
    """A tool and its arguments. ``tool`` is ``name`` or ``skill/tool``."""

    tool: str
    args: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Check:
    """Decides success. ``kind`` is one of checks.KINDS or of a plug-in; ``spec`` holds that kind's parameters."""

    kind: str
    spec: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that stands in the workspace when the run starts."""

    path: str  # relative, POSIX
    sha256: str  # of the blob
    size: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use. Everything is enforced outside the run's reach."""

    steps: int = 50
    wall_s: float = 60.0
    memory_mb: int = 512
    output_bytes: int = 1 << 20  # what an answer, an observation, or a stream may hold
    workspace_mb: int = 64
    processes: int = 64
    # What its model calls may use; 0 means: as the settings' budget says.
    cost_usd: float = 0.0
    tokens: int = 0
    calls: int = 0


class _Keyed:
    """Room for a key that was computed: an evolution asks some hundred times for those of a dozen tasks."""

    __slots__ = ("_key",)
    _key: str


@dataclass(frozen=True, slots=True)
class Task(_Keyed):
    """A goal with inputs, limits and checks."""

    id: str
    name: str
    goal: str
    call: Call | None
    inputs: tuple[InputFile, ...]
    agent: str
    limits: Limits
    effects: tuple[Effect, ...]
    checks: tuple[Check, ...]
    schedule: str | None
    created_at: datetime
    secrets: tuple[str, ...] = ()  # that its runs may have put into their requests
    parent: str = ""  # the task whose run handed this one over; nobody but that run starts it
    sources: tuple[
        InputSource, ...
    ] = ()  # live inputs that are still to be read; then they are among ``inputs``
    trigger: Trigger | None = None
    deliver: tuple[Destination, ...] = ()
    schedule_id: str = ""  # the task that this one is a copy of

    @property
    def key(self) -> str:
        """Identity of the *work*: two tasks with equal keys ask for the same thing."""
        try:
            return self._key
        except AttributeError:
            key = digest([self.goal, self.call, self.inputs, self.agent, self.checks])
            object.__setattr__(self, "_key", key)
            return key

    @property
    def recurs(self) -> bool:
        """Whether it is a schedule: copies of it run, and never it itself."""
        return self.schedule is not None or (self.trigger is not None and self.trigger.watch is not None)


class TaskState(StrEnum):
    """Where a task stands. A scheduled task is ``scheduled`` (or ``paused``) and spawns queued ones."""

    SCHEDULED = "scheduled"
    PAUSED = "paused"
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"  # for a person's answer
    DONE = "done"
    CANCELLED = "cancelled"


class Share(StrEnum):
    """Which of the disjoint sets a task belongs to, for good: assigned when first seen."""

    OPEN = "open"  # may serve as evidence or guard
    HOLD_OUT = "hold-out"  # hidden from proposers


def share_of(task_key: str, hold_out: float) -> Share:
    """The set that work with this key belongs to: a stable hash, ``hold_out`` of it hidden."""
    fraction = int(digest(["share", task_key])[:12], 16) / 16**12
    return Share.HOLD_OUT if fraction < hold_out else Share.OPEN
