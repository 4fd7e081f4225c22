"""How tools are tried before they are let in: a callable that the daemon provides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from agentos.domain import ResourceId
from agentos.resources import examine

if TYPE_CHECKING:
    from agentos.messages import ToolCard  # builds pydantic models: 40 ms that reading commands do not need

# Loads the tool files (second argument) among a resource's files (registry path -> content) in a
# sandbox: the cards of those that loaded, and one sentence for each fault.
Load: TypeAlias = "Callable[[Mapping[str, bytes], Sequence[str]], tuple[list[ToolCard], list[str]]]"


def trial(
    resource: ResourceId, files: Mapping[str, bytes], load: Load | None
) -> tuple[list[ToolCard], list[str]]:
    """Examine the resource and load its tools; the cards, and one sentence for each fault."""
    reading = examine(resource, files)
    if reading.resource is None:
        return [], list(reading.faults)
    if load is None or not reading.resource.tools:
        return [], []
    return load(files, reading.resource.tools)
