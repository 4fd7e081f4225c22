"""What each check of the supervisor is worth: it is held against recorded runs that it did not act on.

The norms are fitted on the older half, the newer half is measured. A run that was stopped cannot tell whether it
would have passed, so a share of all tasks is only ever looked at (``is_observed``); once a check has acted, it is
measured on those alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentos.domain import Step, SupervisorWorth, digest
from agentos.supervisor.norms import PastNorms, PastRun, fit
from agentos.supervisor.watching import MENDABLE, NODE, RunWatch, SupervisorCheck

PASSED_MIN = 20  # passed runs before a loss is held against a check
HOPELESS_PASSED_MIN = 30  # without so many, an estimate is not calibrated, and stops nothing
_ENDS = ("stop", "ask")


@dataclass(frozen=True, slots=True)
class Fired:
    """Where a check would have stopped a recorded run: after this step of it, with the share of its cost that came later."""

    step: int
    saved: float


def is_observed(task_id: str, share: float) -> bool:
    """Whether the task is one of those that are only looked at: the same live and in a trial."""
    return int(digest(["supervisor", task_id])[:8], 16) < share * 2**32


def measure(past: Sequence[PastRun], lost: float, observed: float) -> tuple[SupervisorWorth, ...]:
    """``past`` oldest first; ``lost`` is the share of successes that a check may cost."""
    half = len(past) // 2
    return worth_on(past[half:], fit(past[:half]), lost, observed)


def worth_on(
    measured: Sequence[PastRun], norms: PastNorms, lost: float, observed: float
) -> tuple[SupervisorWorth, ...]:
    """What each check would have done in these runs."""
    fired = [fired_in(one.steps, norms, one) for one in measured]
    costs = [_cost(one) for one in measured]
    found = []
    for check in SupervisorCheck:
        if check is SupervisorCheck.SILENT_TOOL or check is SupervisorCheck.OVERSEER:
            hits = [_acted(one.steps, check) for one in measured]
        else:
            hits = [each.get(check) for each in fired]
        began = min((one.run.started_at for one in measured if has_acted(one.steps, check)), default=None)
        rows = [
            (one, hit, cost)
            for one, hit, cost in zip(measured, hits, costs, strict=True)
            if _is_free(one, began, observed)
        ]
        found.append(_worth(check, rows, lost))
    return tuple(found)


def fired_in(steps: Sequence[Step], norms: PastNorms, past: PastRun) -> dict[SupervisorCheck, Fired]:
    """Where each check would have ended the run: where an agent is warned first, the second time that it fires."""
    watch = RunWatch(norms.of(past.run.task_key, past.agent))
    found: dict[SupervisorCheck, Fired] = {}
    warned: set[SupervisorCheck] = set()
    total = sum(map(step_cost, steps)) or 1.0
    spent = 0.0
    for step in steps:
        watch.saw(step)
        spent += step_cost(step)
        for finding in watch.take():
            if finding.check in MENDABLE and finding.check not in warned:
                warned.add(finding.check)
            else:
                found.setdefault(finding.check, Fired(step.index, 1 - spent / total))
    return found


def step_cost(step: Step) -> float:
    """Tokens of a model's step; one for any other and one for each second of it, so that there is a cost without
    models too."""
    usage = step.observation.get("usage") if isinstance(step.observation, dict) else None
    if step.node == "model" and isinstance(usage, dict):
        return float(sum(int(usage.get(name) or 0) for name in ("input_tokens", "output_tokens")))
    return 1.0 + step.duration_ms / 1000


def has_acted(steps: Iterable[Step], check: SupervisorCheck) -> bool:
    """Whether it stopped the run, or asked a person."""
    return any(
        step.node == NODE
        and isinstance(step.action, dict)
        and step.action.get("check") == check
        and step.action.get("act") in _ENDS
        for step in steps
    )


def _acted(steps: Sequence[Step], check: SupervisorCheck) -> Fired | None:
    """Where it said something: of what cannot be read off the steps again."""
    total, spent = sum(map(step_cost, steps)) or 1.0, 0.0
    for step in steps:
        spent += step_cost(step)
        if step.node == NODE and isinstance(step.action, dict) and step.action.get("check") == check:
            return Fired(step.index, 1 - spent / total)
    return None


def _is_free(one: PastRun, began: datetime | None, observed: float) -> bool:
    return began is None or one.run.started_at < began or is_observed(one.run.task_id, observed)


def _cost(one: PastRun) -> float:
    return sum(map(step_cost, one.steps))


def _worth(
    check: SupervisorCheck, rows: Sequence[tuple[PastRun, Fired | None, float]], lost_max: float
) -> SupervisorWorth:
    passed = sum(one.passed for one, _, _ in rows)
    fired = sum(hit is not None for _, hit, _ in rows)
    lost = sum(one.passed for one, hit, _ in rows if hit is not None)
    total = sum(cost for _, _, cost in rows) or 1.0
    saved = sum(hit.saved * cost for _, hit, cost in rows if hit is not None) / total
    why = ""
    if passed >= PASSED_MIN and lost / passed > lost_max:
        why = f"it would have lost {lost} of {passed} successes, {lost_max:.0%} are allowed"
    elif check is SupervisorCheck.HOPELESS and passed < HOPELESS_PASSED_MIN:
        why = f"{passed} passed runs to measure it on, {HOPELESS_PASSED_MIN} are needed"
    return SupervisorWorth(check.value, len(rows), passed, fired, lost, saved, not why, why)
