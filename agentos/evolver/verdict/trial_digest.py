"""The digest of the trials that a verdict was computed from, the same for records that earlier versions stored."""

from __future__ import annotations

from collections.abc import Sequence

from agentos.domain import CheckResult, Cost, Fault, Json, Outcome, SafetyRate, Trial, digest

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
    "taken_from",
)
_ADDED_COST = ("calls", "live_calls")
_ADDED_FAULT = ("origin", "kind")
_ADDED_CHECK = ("plugin",)


def trials_sha256(trials: Sequence[Trial], rates: Sequence[SafetyRate]) -> str:
    """Over all of them, in whatever order they come."""
    said = [*map(_as_first_stored, trials), *map(_rate_as_first_stored, rates)]
    return digest(sorted(digest(item) for item in said))


def _as_first_stored(trial: Trial) -> Json:
    """The trial without what later versions added, as long as it says nothing: old digests stay."""
    outcome = trial.outcome
    ended = _fields(outcome, ()) | {"cost": _fields(outcome.cost, _ADDED_COST)}
    ended["checks"] = [_fields(check, _ADDED_CHECK) for check in outcome.checks]
    if outcome.fault:
        ended["fault"] = _fields(outcome.fault, _ADDED_FAULT)
    return _fields(trial, _ADDED) | {"outcome": ended}


def _rate_as_first_stored(rate: SafetyRate) -> Json:
    return _fields(rate, ("image",))


def _fields(
    record: Trial | Outcome | Cost | Fault | CheckResult | SafetyRate, added: Sequence[str]
) -> dict[str, Json]:
    """Its fields by name, but for ``added`` ones that say nothing; records in them are left as they are."""
    values = {name: getattr(record, name) for name in record.__dataclass_fields__}
    return {name: value for name, value in values.items() if value or name not in added}
