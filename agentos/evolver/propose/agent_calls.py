"""The calls that agents made of one tool, in failing runs and below them: a search tries them as it does tasks.

A task that leaves its calls to an agent names none. Where its agents called the tool at fault, each call that
failed is a case without a check, which only the trials of the whole task supply, and each that worked has to give
what it gave.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentos.domain import Call, Json, Run, Task, digest, is_reference
from agentos.evolver.find.agent_failures import HandedFailure
from agentos.evolver.find.mining import run_below
from agentos.evolver.propose import BriefContext
from agentos.ports import Case, ObservedRun

CALLS_MAX = 10  # of either kind


@dataclass(frozen=True, slots=True)
class AgentCalls:
    """Calls of the tool that failed, and those that worked with what they gave."""

    failing: tuple[Case, ...] = ()
    working: tuple[tuple[Case, Json], ...] = ()


def calls_in(
    parts: BriefContext, runs: Sequence[ObservedRun], guards: Sequence[Task], path: str
) -> AgentCalls:
    """Those of the tool at ``path``, where tasks name no call: in failing runs, and in runs of the guards that may be
    shown those that worked."""
    failing: dict[str, Case] = {}
    working: dict[str, tuple[Case, Json]] = {}
    if not path.startswith(("tool/", "skill/")):
        return AgentCalls()
    roots = [(seen.task, seen.run) for seen in runs if not seen.passed]
    roots += [(task, run) for task in guards for run in parts.journal.runs_of(task.key, 1)]
    for root, above in roots:
        if root.call is not None:
            continue
        for task, run in _tree(parts, root, above):
            inputs = {item.path: parts.blobs.get(item.sha256) for item in task.inputs}
            for step in parts.journal.steps(run.id):
                action, came = step.action, step.observation
                if step.node != "act" or not isinstance(action, dict) or action.get("path") != path:
                    continue
                case = Case(task.id, Call(str(action["tool"]), action["args"]), inputs, ())
                key = digest([case.call, sorted(inputs)])
                if step.fault is not None and step.fault.resource:
                    failing[key] = case
                elif step.fault is None and isinstance(came, dict) and not is_reference(came):
                    working[key] = (case, came.get("output"))
    return AgentCalls(tuple(failing.values())[:CALLS_MAX], tuple(working.values())[:CALLS_MAX])


def _tree(parts: BriefContext, task: Task, run: Run) -> Iterator[tuple[Task, Run]]:
    """The run, and all that it handed work to."""
    yield task, run
    for step in parts.journal.steps(run.id):
        if step.node == "delegate" and isinstance(step.observation, dict):
            handed = HandedFailure(step.index, "", str(step.observation.get("task")))
            if (below := run_below(parts, handed)) is not None:
                yield from _tree(parts, parts.journal.task(below.task_id), below)
