"""A call that names several files is made once for each of them, side by side where it only reads."""

from __future__ import annotations

from joining import joined

from agentos.worker.sdk import Sdk, ToolCall, ToolResult


def call(sdk: Sdk, tool: str, args: dict[str, object]) -> ToolResult:
    """The answer to a call; to one that names several files, the answers in the order of the names."""
    names = args.get("path")
    if not isinstance(names, list):
        return sdk.call_tool(tool, args)
    calls = {name: ToolCall(tool, {**args, "path": name}) for name in names}
    results = dict(zip(sorted(calls), sdk.call_tools([*calls.values()]), strict=True))
    return joined([results[name] for name in names])
