"""What the commit of a promotion on a newer base says; apart from what makes one, for the audit reads it too."""

from __future__ import annotations

from agentos.domain import Rebase, Snapshot


def rebase_trailers(judged: Snapshot, rebase: Rebase) -> dict[str, str]:
    """What the commit of such a promotion says of it."""
    return {"Judged-Tree": judged.tree, "Bundles": f"{rebase.bundles_sha256} of {rebase.trials} trials"}
