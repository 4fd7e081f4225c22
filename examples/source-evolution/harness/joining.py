"""What several calls gave, as if one call had given it."""

from __future__ import annotations

from collections.abc import Sequence

from agentos.worker.sdk import Clip, ToolResult


def joined(results: Sequence[ToolResult]) -> ToolResult:
    """All outputs in one list, or the first failure."""
    failed = [result for result in results if not result.ok]
    if failed:
        return failed[0]
    answer = [result.output for result in results]
    return ToolResult(True, answer, None, Clip(), Clip(), sum(result.duration_ms for result in results))
