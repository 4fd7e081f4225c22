"""The digest of the trials that a verdict was computed from, the same for records that earlier versions stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from agentos.domain import Json, SafetyRate, Trial, digest

# Fields that trials did not have when the first were stored and digested.
_ADDED = (
    "run_id",
    "recording",
    "drift",
    "steps_sha256",
    "number",
    "alike",
    "image",
    "look",
    "renamed",
    "bundle",
    "reached",
)
_ADDED_COST = ("calls", "live_calls")
_ADDED_FAULT = ("origin", "kind")


def trials_sha256(trials: Sequence[Trial], rates: Sequence[SafetyRate]) -> str:
    """Over all of them, in whatever order they come."""
    said = [*map(_as_first_stored, trials), *map(_rate_as_first_stored, rates)]
    return digest(sorted(digest(item) for item in said))


def _as_first_stored(trial: Trial) -> Json:
    """The trial without what later versions added, as long as it says nothing: old digests stay."""
    data = asdict(trial)
    outcome = data["outcome"]
    for record, added in (
        (data, _ADDED),
        (outcome["cost"], _ADDED_COST),
        (outcome["fault"] or {}, _ADDED_FAULT if outcome["fault"] else ()),
    ):
        for name in added:
            if not record[name]:
                del record[name]
    return data


def _rate_as_first_stored(rate: SafetyRate) -> Json:
    data = asdict(rate)
    if not rate.image:
        del data["image"]
    return data
