"""Has the totals held against the ledger."""

from __future__ import annotations

from agentos.worker.sdk import Sdk


def run(sdk: Sdk) -> None:
    """What the worker process calls, once for each run."""
    (ledger,) = (name for name in sdk.inputs if name != "totals.json")
    result = sdk.call_tool("check_totals", {"ledger": ledger, "totals": "totals.json"})
    if result.fault is not None:
        return sdk.fail(result.fault)
    return sdk.finish(result.output["wrong"])
