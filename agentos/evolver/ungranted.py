"""Which failures are a person's to settle: the kernel refused what the work asks for, and a person could allow it.

No edit of a tool mends those. That the kernel refused is the kernel's own record, of a node that no box can write;
that the run failed *by it* is told by the fault, which has to say the same sentence. A tool can bring both about
on purpose, so such a failure is never only dropped: it is counted, a person is told of it, whoever calls the run bad
makes evidence of it all the same, and where equal work passed without asking there, it is the tool's fault. Of a run
that a rule ended, a person's word makes evidence where an agent chose what the rule is against (``avoidable``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from agentos.domain import Fault, KernelFault, Origin, Outcome, Result, Run, Step, Task, kind_of, origin_of
from agentos.ports import Journal

FETCH = "fetch"  # the node of such a request
GRANT = "grant"  # in what the kernel answered: a person could allow it
_LOOKED_AT = 20  # newest runs of equal work
_LEAST = 20  # characters of a sentence of the kernel's that a fault has to hold


def ungranted(outcome: Outcome | None, fault: Fault | None, steps: Iterable[Step]) -> Step | None:
    """The request that was refused and that ``fault``, of a tool's code, is about; None where it is of something else.

    An answer that is wrong is never about a request that was refused.
    """
    if outcome is None or outcome.result is not Result.FAILED or fault is None:
        return None
    if origin_of(fault) is not Origin.TOOL:
        return None
    for step in steps:
        said = step.observation if step.node == FETCH and isinstance(step.observation, dict) else {}
        sentence = str(said.get("error", ""))
        if said.get(GRANT) is True and len(sentence) >= _LEAST and sentence in fault.message:
            return step
    return None


def yours(outcome: Outcome | None, steps: Iterable[Step]) -> str:
    """What a person would have to allow, or to change, so that the run does not fail by it; "" where it is not that."""
    if outcome is None or outcome.fault is None:
        return ""
    if kind_of(outcome.fault) is KernelFault.RULE:
        return f"{outcome.fault.message} (`agentos rule list` shows the rules)"
    step = ungranted(outcome, outcome.fault, steps)
    return str(step.observation["error"]) if step is not None and isinstance(step.observation, dict) else ""


def avoidable(task: Task, outcome: Outcome | None, steps: Sequence[Step]) -> bool:
    """Whether an edit could do without what was refused.

    Not where a rule ended a run whose task names the call, or let none begin: no edit of a resource changes that.
    """
    if outcome is None or kind_of(outcome.fault) is not KernelFault.RULE:
        return True
    return task.call is None and bool(steps)


def passed_without(journal: Journal, run: Run, refused: Step) -> bool:
    """Whether equal work passed without a request to that host: then the tool need not have asked."""
    return any(
        other.outcome is not None
        and other.outcome.result is Result.PASSED
        and _host(refused) not in {_host(step) for step in _fetches(journal.steps(other.id))}
        for other in journal.runs_of(run.task_key, _LOOKED_AT)
    )


def _fetches(steps: Sequence[Step]) -> list[Step]:
    return [step for step in steps if step.node == FETCH]


def _host(step: Step) -> str:
    action = step.action if isinstance(step.action, dict) else {}
    try:
        return urlsplit(str(action.get("url", ""))).netloc.lower()
    except ValueError:
        return ""
