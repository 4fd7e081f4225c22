"""What runs left on record, as another run of the same work is served from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentos.domain.resources import Snapshot
from agentos.identity import Json


@dataclass(frozen=True, slots=True)
class RecordedTool:
    """One tool call of a recorded run, in its order."""

    tool: str
    args: Json
    result: Json  # as the step's observation
    fault: Json  # as WireFault, or None
    served: bool = False  # it was not made in that run, but served from the record of another


@dataclass(frozen=True, slots=True)
class RecordedFetch:
    """One request of a run to the outside world, and what came of it."""

    request: Json  # {"method", "url", "headers", "body"}, the body in base64
    answer: Json  # {"status", "headers", "body"}, or {"error": why nobody answered}


@dataclass(frozen=True, slots=True)
class Recording:
    """What a run may be served from: the model calls and tool calls of runs before it."""

    run_ids: tuple[str, ...]
    snapshot: Snapshot  # on which they were made
    tools: tuple[RecordedTool, ...]
    answers: Mapping[str, str] = field(default_factory=dict)  # a person's, by question
    fetches: tuple[RecordedFetch, ...] | None = None  # None: some were recorded without their answers
