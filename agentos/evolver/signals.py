"""Signals: cheap attributes of a trajectory, computed without a model, in one pass over its steps.

They mark a run as worth looking at; they are no measure of quality. The rules follow "Signals"
(arXiv 2604.00356) with two changes learnt from its misfires: a failure is read from the step's
structured fault, never from quoted text, and calls of tools that only read do not count as drift.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from agentos.domain import Json, Step

LOOP_MIN = 3  # equal calls in a row
CYCLE_MIN = 3  # repetitions of a pattern of calls
CYCLE_PERIODS = range(2, 6)
STAGNANT_MIN = 3  # equal observations in a row, of differing calls

_EXHAUSTION = frozenset({"timeout", "memory", "limit", "budget", "signal", "killed"})


class Signal(StrEnum):
    """What a trajectory shows."""

    FAILURE = "failure"  # a step carries a fault
    RETRY_LOOP = "retry_loop"  # the same call, again and again
    OSCILLATION = "oscillation"  # a short pattern of calls, again and again
    DRIFT = "drift"  # the same tool with ever other arguments, each failing
    STAGNATION = "stagnation"  # differing calls, the same observation
    EXHAUSTION = "exhaustion"  # a limit was reached


@dataclass(frozen=True, slots=True)
class Sign:
    """One signal and the step it rests on."""

    signal: Signal
    step: int
    detail: str = ""


def read_signals(steps: Iterable[Step]) -> tuple[Sign, ...]:
    """All signals of one trajectory: faults in order, then loops and stagnation."""
    found: list[Sign] = []
    acts: list[Step] = []
    for step in steps:
        if step.fault is not None:
            kind = Signal.EXHAUSTION if step.fault.type in _EXHAUSTION else Signal.FAILURE
            found.append(Sign(kind, step.index, step.fault.type))
        if step.node == "act":
            acts.append(step)
    if len(acts) >= LOOP_MIN:
        found += _loops(acts)
        found += _stagnation(acts)
    return tuple(found)


def _tool(step: Step) -> Json:
    return step.action.get("tool") if isinstance(step.action, dict) else step.action


def _loops(acts: Sequence[Step]) -> list[Sign]:
    """Retry loops, then drift, then oscillation; a later kind only where no earlier one covers it."""
    found: list[Sign] = []
    start = 0
    for position in range(1, len(acts) + 1):
        if position < len(acts) and _tool(acts[position]) == _tool(acts[start]):
            continue
        streak = acts[start:position]
        start = position
        if len(streak) < LOOP_MIN:
            continue
        if all(step.action == streak[0].action for step in streak):
            found.append(Sign(Signal.RETRY_LOOP, streak[-1].index, f"{len(streak)} equal calls"))
        elif all(step.fault is not None for step in streak):
            found.append(Sign(Signal.DRIFT, streak[-1].index, f"{len(streak)} calls, none worked"))
    return found or _oscillation(acts)


def _oscillation(acts: Sequence[Step]) -> list[Sign]:
    tools = [str(_tool(step)) for step in acts]
    for period in CYCLE_PERIODS:
        length = period * CYCLE_MIN
        for start in range(len(tools) - length + 1):
            pattern = tools[start : start + period]
            if len(set(pattern)) > 1 and tools[start : start + length] == pattern * CYCLE_MIN:
                return [Sign(Signal.OSCILLATION, acts[start + length - 1].index, " → ".join(pattern))]
    return []


def _stagnation(acts: Sequence[Step]) -> list[Sign]:
    streak = 1
    for before, step in pairwise(acts):
        same = step.observation == before.observation and step.action != before.action
        streak = streak + 1 if same else 1
        if streak == STAGNANT_MIN:
            return [Sign(Signal.STAGNATION, step.index, f"{streak} calls, one observation")]
    return []
