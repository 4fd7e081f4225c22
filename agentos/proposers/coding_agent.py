"""What the evolver asks of a workshop: the port of ``daemon/evolve/coding_agent.py``, and of its fakes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from agentos.domain import Budget, Cost, Fault, Limits, Snapshot


@dataclass(frozen=True, slots=True)
class AgentJob:
    """Work for a program in a box of its own, where nothing is but what stands here.

    Words of ``command`` may hold ``{program}`` (the directory of ``program``), ``{workspace}``, ``{model}``
    (its name) and ``{python}``. It runs in the workspace, which holds ``files``, and finds its models
    at OPENAI_BASE_URL.
    """

    id: str  # its model calls are on record under it: an errand done again is served from there
    evolution_id: str
    base: Snapshot  # at which the model is looked up
    command: tuple[str, ...]
    program: Mapping[str, bytes]  # relative path -> content
    files: Mapping[str, bytes]
    model: str  # name of the resource; "" is the settings'
    budget: Budget  # of model calls; its seconds are those of the whole errand
    limits: Limits  # memory and workspace of the box


@dataclass(frozen=True, slots=True)
class AgentJobResult:
    """What an errand left. With a ``fault`` the program did not come to its end by itself."""

    files: Mapping[str, bytes]  # every plain file in the workspace, unchanged ones too
    refused: tuple[str, ...]  # a sentence for each thing that is no plain file
    fault: Fault | None
    cost: Cost
    steps_sha256: str  # the blob with what it did, as recorded


class AgentRunner(Protocol):
    """Runs programs that edit files: coding agents."""

    def run(self, errand: AgentJob) -> AgentJobResult:
        """Blocks until its box is gone. Raises Unavailable when the machinery failed: do it again."""
        ...
