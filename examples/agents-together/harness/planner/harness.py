"""Splits the ledger by region, hands each part to a worker, and has the totals checked before it answers."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path

from agentos.worker.sdk import Sdk, fault

ROUNDS = 2  # a total that the checker disputes is worked out once more


def run(sdk: Sdk) -> None:
    """What the worker process calls, once for each run."""
    (ledger,) = sdk.inputs
    parts = split(ledger)
    sdk.step("plan", {"ledger": ledger}, {"parts": sorted(parts)})
    totals: dict[str, float] = {}
    open_parts = sorted(parts)
    for _ in range(ROUNDS):
        for region in open_parts:
            below = sdk.delegate("worker", f"Add up the amounts in {parts[region]}", [parts[region]])
            if not below["ok"]:
                return sdk.fail(fault("agent", f"the worker of {region} failed: {below['reason']}"))
            totals[region] = below["answer"]
        Path("totals.json").write_text(json.dumps(totals))
        below = sdk.delegate("checker", f"Hold totals.json against {ledger}", ["totals.json", ledger])
        if not below["ok"]:
            return sdk.fail(fault("agent", f"the checker failed: {below['reason']}"))
        open_parts = below["answer"]
        if not open_parts:
            return sdk.finish(totals)
    return sdk.fail(fault("agent", f"worker and checker do not agree on {', '.join(open_parts)}"))


def split(ledger: str) -> dict[str, str]:
    """A file for each region, by region."""
    with open(ledger, newline="") as file:
        rows = list(csv.DictReader(file))
    by_region = defaultdict(list)
    for row in rows:
        by_region[row["region"]].append(row["amount"])
    for region, amounts in by_region.items():
        Path(f"part-{region}.txt").write_text("\n".join(amounts) + "\n")
    return {region: f"part-{region}.txt" for region in by_region}
