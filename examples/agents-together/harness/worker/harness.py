"""Adds up the one file that it was given."""

from __future__ import annotations

from agentos.worker.sdk import Sdk


def run(sdk: Sdk) -> None:
    """What the worker process calls, once for each run."""
    result = sdk.call_tool("sum_amounts", {"path": sdk.inputs[0]})
    if result.fault is not None:
        return sdk.fail(result.fault)
    return sdk.finish(result.output["total"])
