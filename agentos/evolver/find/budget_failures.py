"""Runs that used up what they might: when that is their own fault, and when they were given too little.

A budget that somebody set too low is no fault of what evolves. So such a run counts as failed only where
it shows by itself that no budget would have done: it made the same call again and again, or asked again for
what it knew; or where other work like it shows that this one would have: an equal task passed with no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentos.domain import SHARED, Cost, Fault, KernelFault, Kind, Outcome, Result, Run, Step, Task, kind_of
from agentos.errors import ModelAway, ModelMissing
from agentos.evolver.find import InspectContext
from agentos.evolver.find.signals import Signal, read_signals

# Steps and questions; calls, tokens and money of models. Of a budget that many runs share none is to blame.
_OWN = frozenset({KernelFault.LIMIT, KernelFault.BUDGET, KernelFault.SUPERVISOR})
_CIRCLES = frozenset({Signal.RETRY_LOOP, Signal.FORGOTTEN})


def as_failed(parts: InspectContext, task: Task, run: Run, steps: Sequence[Step] | None = None) -> Run:
    """The run, as one that failed where it used up its budget by a fault; else as it is.

    ``steps`` are its own where the journal does not know it.
    """
    outcome = run.outcome
    if outcome is None or outcome.result is not Result.BUDGET or outcome.fault is None:
        return run
    fault = outcome.fault
    if kind_of(fault) not in _OWN:
        return run
    own = parts.journal.steps(run.id) if steps is None else steps
    circles = any(sign.signal in _CIRCLES for sign in read_signals(own))
    if not circles and not _was_enough(parts, run, outcome, len(own)):
        return run
    if task.call is not None:  # what it called is not asked how many steps it took
        fault = Fault("harness", f"it did not come to an end: {fault.message}", resource=_harness(run))
    return replace(run, outcome=replace(outcome, result=Result.FAILED, fault=fault))


def _was_enough(parts: InspectContext, run: Run, outcome: Outcome, steps: int) -> bool:
    """Whether equal work passed with no more than the run had used when it was stopped."""
    return any(
        other.outcome is not None
        and other.outcome.result is Result.PASSED
        and _no_more(other.outcome.cost, outcome.cost)
        and len(parts.journal.steps(other.id)) <= steps
        for other in parts.journal.runs_of(run.task_key, parts.policy.look_back.successes)
    )


def _no_more(cost: Cost, than: Cost) -> bool:
    return cost.calls <= than.calls and cost.tokens <= than.tokens and (cost.usd or 0.0) <= (than.usd or 0.0)


def _harness(run: Run) -> str:
    prefix = f"{Kind.HARNESS.value}/"
    return next((name for name in run.resources if name.startswith(prefix)), f"{prefix}default")


def no_model(outcome: Outcome) -> str:
    """Why no model answered that should have, "" if that did not end the run.

    No model is configured, or what all trials or all runs of a day may use is used up: the next trial
    would fail alike, whatever it tries. What the run alone may use is the run's own affair.
    """
    kind = kind_of(outcome.fault)
    if outcome.fault is None or kind not in SHARED:
        return ""
    said = outcome.fault.message
    return f"no model is configured ({said})" if kind is KernelFault.NO_MODEL else said


def without_model(outcome: Outcome, what: str) -> ModelAway | None:
    """What to raise where no model answered: ``what`` says what came to nothing. None where one did.

    A budget of the day is there again tomorrow; a model that is not set up, and the evolution's budget, are not.
    """
    if not (why := no_model(outcome)):
        return None
    returns = kind_of(outcome.fault) is KernelFault.DAY_BUDGET
    return (ModelAway if returns else ModelMissing)(f"{what}: {why}")
