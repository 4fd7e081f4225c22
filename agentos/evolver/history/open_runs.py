"""Open live runs of the evidence's work: those that fail, and those that pass beside them."""

from __future__ import annotations

from collections.abc import Sequence

from agentos.domain import IMPORT, Result, Task
from agentos.evolver.find import ReadContext
from agentos.evolver.find.holding_back import is_open
from agentos.ports import ObservedRun

RUNS_A_TASK = 4  # newest first; a passing one is kept beside failing ones where there is any


def runs_of(parts: ReadContext, tasks: Sequence[Task]) -> tuple[ObservedRun, ...]:
    """The failing ones of all tasks first, then the passing ones; each newest first."""
    failing: list[ObservedRun] = []
    passing: list[ObservedRun] = []
    for task in tasks:
        found: list[ObservedRun] = []
        for run in parts.journal.runs_of(task.key, parts.policy.look_back.shown):
            if is_open(parts, run) and run.outcome is not None and run.sandbox != IMPORT:
                found.append(ObservedRun(task, run, tuple(parts.journal.steps(run.id))))
        passed = [seen for seen in found if seen.passed][:RUNS_A_TASK]
        failed = [seen for seen in found if _failed(seen)][: RUNS_A_TASK - bool(passed)]
        failing += failed
        passing += passed[: RUNS_A_TASK - len(failed)]
    return (*failing, *passing)


def _failed(seen: ObservedRun) -> bool:
    outcome = seen.run.outcome
    return outcome is not None and outcome.result in (Result.FAILED, Result.TIMEOUT, Result.BUDGET)
