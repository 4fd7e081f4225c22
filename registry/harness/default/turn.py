"""What one run of the graph works on. The graph's own state holds only where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agentos.worker.sdk import ToolResult, WireFault


@dataclass
class Turn:
    """``tool`` and ``args`` are what will be called; ``fault`` is why there will be no answer."""

    tool: str = ""
    args: dict[str, Any] = field(default_factory=dict)
    result: ToolResult | None = None
    answer: Any = None
    fault: WireFault | None = None
