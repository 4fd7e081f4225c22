"""What one run of the graph works on, and the graph's own state, which holds only where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict

from agentos.worker.sdk import ToolResult, WireFault


class State(TypedDict):
    """Only where the run stands: graph state is copied at every step, so nothing large is in it."""

    turn: int


class Node(Protocol):
    """Does one thing, records it as a step, and names the node that follows."""

    __name__: str

    def __call__(self, state: State) -> Any:
        """The command where to go; the last node gives none."""
        ...


@dataclass
class Turn:
    """``tool`` and ``args`` are what will be called; ``fault`` is why there will be no answer."""

    tool: str = ""
    args: dict[str, Any] = field(default_factory=dict)
    result: ToolResult | None = None
    answer: Any = None
    fault: WireFault | None = None
