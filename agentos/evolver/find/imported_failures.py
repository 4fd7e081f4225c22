"""What a failed run that was made elsewhere went wrong by, so that equal failures are found together.

Where a tool failed and never worked again, that is the failure, whichever task it was met in: the tool,
the kind of error and its message without what differs from run to run. Where no tool tells, two runs failed
alike if they missed the same task, stopped at the same tool or speaker, and changed the same things.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentos.domain import Run, Step
from agentos.evolver.find.agent_failures import never_worked, root_step
from agentos.evolver.find.signals import changed_names
from agentos.evolver.find.step_failures import speaker_of, tool_of

CHANGES_MAX = 8  # names in one signature


def imported_lapse(run: Run, steps: Sequence[Step], normalise: Callable[[str], str]) -> tuple[str, ...]:
    """The parts of the failure's signature: where, the kind, its message; else the task and the changes."""
    failing = never_worked(steps)
    if failing:
        last = failing[-1]
        return last.where, last.type, normalise(last.message)
    root = root_step(steps)
    at = next((step for step in steps if step.index == root), None)
    acts = [step for step in steps if step.node == "act"]
    who = (speaker_of(at) if at is not None else "") or (tool_of(acts[-1]) if acts else "")
    changed = list(dict.fromkeys(name for step in acts for name in changed_names(step)))
    return who or "no call", "missed", ", ".join(sorted(changed)[:CHANGES_MAX]), f"task {run.task_key[:16]}"
