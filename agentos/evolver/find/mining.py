"""Mine: read each finished run once and note its failure as a sighting.

The sightings and the cursor move in one transaction, so that mining again, also after a crash,
never counts a run twice. What runs of hold-out tasks show is marked as hidden: nothing that a proposer may
see is made of it, unless the hold-out gives the task away (``triage``).
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agentos.domain import (
    Call,
    Fault,
    KernelFault,
    Kind,
    Origin,
    Outcome,
    Result,
    Run,
    Sighting,
    Step,
    Task,
    kind_of,
    origin_of,
)
from agentos.errors import ErrorKind, NotFound, UserError
from agentos.evolver.find import InspectContext, MineContext
from agentos.evolver.find.fingerprints import (
    AgentActions,
    Failure,
    HandedFailure,
    as_failed,
    failed_below,
    failure_of,
    mistold,
    of_bad_call,
    of_refusal,
)
from agentos.evolver.find.triage import is_open
from agentos.evolver.policy import FailureClass

if TYPE_CHECKING:
    from agentos.ports import Journal

CURSOR = "mine"
BATCH = 500
BELOW_MAX = 20  # newest runs of equal work, among which that of a hand-over is looked for


def mine(parts: MineContext) -> int:
    """Read all runs that finished since the last call; the number of sightings stored, but for hidden ones."""
    stored = 0
    while True:
        position = parts.cursor.read(CURSOR)
        batch = parts.journal.runs_after(position, BATCH)
        if not batch:
            return stored
        sightings = [found for _, run in batch if (found := _sighting(parts, run)) is not None]
        parts.cursor.advance(CURSOR, batch[-1][0], sightings)
        stored += sum(not sighting.hidden for sighting in sightings)


def flag(parts: MineContext, run: Run) -> Sighting:
    """A person says that this run matters: one such sighting is enough to open evidence."""
    if not is_open(parts, run):
        raise UserError(
            f"{run.id} belongs to a hidden hold-out task, which may not become evidence.",
            kind=ErrorKind.HIDDEN,
        )
    failure = as_it_says(parts, run)
    if failure is None:
        raise UserError(f"{run.id} did not fail; give the task a check that fails, then run it again.")
    return _flagged(parts, run, failure)


def flag_regraded(parts: MineContext, run: Run, said_at: datetime) -> Sighting | None:
    """As ``flag``, of a run that a person's checks failed; what is of hidden work stays hidden.

    It is seen when it is said: a word on an old run is news also after a repair of the same file.
    """
    failure = as_it_says(parts, run)
    return _flagged(parts, run, failure, said_at) if failure else None


def _flagged(parts: MineContext, run: Run, failure: Failure, seen_at: datetime | None = None) -> Sighting:
    sighting = _made(parts, run, failure, flagged=True)
    sighting = replace(sighting, seen_at=seen_at or sighting.seen_at)
    parts.audit.note("run.flag", run.id, {"fingerprint": failure.fingerprint.id}, (sighting,))
    return sighting


def inspect(parts: InspectContext, run: Run, steps: Sequence[Step] | None = None) -> Failure | None:
    """The failure that a run shows, or None. ``steps`` are its own where the journal does not know it."""
    failure = _read(parts, run, steps, inspect, parts.taxonomy)
    if failure is None or failure.broken is None:
        return failure
    if misplaced(parts.journal.task(run.task_id), failure.broken):
        return of_bad_call(failure, parts.taxonomy)
    of_run = parts.journal.steps(run.id) if steps is None else steps
    refused = ungranted(run.outcome, failure.broken, of_run)
    if refused is None or passed_without(parts, run, refused):
        return failure
    return of_refusal(failure, refused, parts.taxonomy)


def as_it_says(parts: InspectContext, run: Run, steps: Sequence[Step] | None = None) -> Failure | None:
    """As ``inspect``, with no regard to what a person could allow: for a person's word, and for trials."""
    taxonomy = parts.taxonomy
    if kind_of(run.outcome.fault if run.outcome else None) is KernelFault.RULE:
        of_run = parts.journal.steps(run.id) if steps is None else steps
        if avoidable(parts.journal.task(run.task_id), run.outcome, of_run):
            taxonomy = tuple(klass for klass in taxonomy if KernelFault.RULE.value not in klass.faults)
    return _read(parts, run, steps, as_it_says, taxonomy)


_Reading = Callable[[InspectContext, Run], Failure | None]


def _read(
    parts: InspectContext,
    run: Run,
    steps: Sequence[Step] | None,
    below: _Reading,
    taxonomy: tuple[FailureClass, ...],
) -> Failure | None:
    """What the run's fault says; ``below`` reads the run of whoever it handed work to."""
    task = parts.journal.task(run.task_id)
    run = as_failed(parts, task, run, steps)
    if task.call is not None:
        failure = failure_of(run, tool_path(task.call, run.resources), taxonomy)
        return _of_harness(parts, task, run, steps) or failure if failure else None
    doing = AgentActions(
        f"{Kind.AGENT.value}/{task.agent}", lambda: parts.journal.steps(run.id) if steps is None else steps
    )
    failure = failure_of(run, "", taxonomy, doing)
    return failure and (_of_below(parts, doing.steps(), below) or failure)


def run_below(parts: InspectContext, handed: HandedFailure) -> Run | None:
    """The newest run of work that was handed over; None where the journal does not know it."""
    try:
        task = parts.journal.task(handed.task_id)
    except NotFound:
        return None
    runs = parts.journal.runs_of(task.key, BELOW_MAX)
    return next((run for run in runs if run.task_id == task.id), None)


def _of_below(parts: InspectContext, steps: Sequence[Step], read: _Reading) -> Failure | None:
    """The failure of whom the run handed work to, where that never succeeded: it is one failure, not two."""
    for handed in failed_below(steps):
        below = run_below(parts, handed)
        if below is not None and (failure := read(parts, below)) is not None:
            return failure
    return None


def _of_harness(parts: InspectContext, task: Task, run: Run, steps: Sequence[Step] | None) -> Failure | None:
    """The failure of a call, where it is its harness': one and the same, whichever tool was called."""
    outcome = run.outcome
    name = next((name for name in run.resources if name.startswith(f"{Kind.HARNESS.value}/")), "")
    if outcome is None or not name:
        return None
    if outcome.fault is not None and outcome.fault.resource == name:
        return failure_of(run, "", parts.taxonomy)
    if not outcome.checks:
        return None
    why = mistold(task, run, parts.journal.steps(run.id) if steps is None else steps)
    fault = Fault("harness", why, resource=name)
    return (
        failure_of(replace(run, outcome=replace(outcome, fault=fault)), "", parts.taxonomy) if why else None
    )


def tool_path(call: Call | None, resources: tuple[str, ...]) -> str:
    """Registry path of the called tool's file, from the reference and the resources a run used."""
    if call is None:
        return ""
    skill, _, tool = call.tool.rpartition("/")
    stem = tool.replace("-", "_")  # a file's name, where the resource's is hyphenated
    if skill:
        return f"skill/{skill}/tools/{stem}.py"
    if f"tool/{tool}" in resources or f"tool/{tool.replace('_', '-')}" in resources:
        return f"tool/{tool.replace('_', '-')}/tool.py"
    owner = next((name for name in resources if name.startswith("skill/")), "")
    return f"{owner}/tools/{stem}.py" if owner else f"tool/{tool.replace('_', '-')}/tool.py"


def called_path(journal: Journal, task: Task) -> str:
    """Of the tool that the task calls; "" where it names no call."""
    if task.call is None:
        return ""
    runs = journal.runs_of(task.key, 1)
    return tool_path(task.call, runs[0].resources if runs else ())


def _sighting(parts: MineContext, run: Run) -> Sighting | None:
    failure = inspect(parts, run)
    return _made(parts, run, failure, flagged=False) if failure else None


def _made(parts: MineContext, run: Run, failure: Failure, *, flagged: bool) -> Sighting:
    return Sighting(
        run_id=run.id,
        task_id=run.task_id,
        task_key=run.task_key,
        fingerprint=failure.fingerprint,
        seen_at=run.finished_at or parts.now(),
        flagged=flagged,
        hidden=not is_open(parts, run),
    )


# -------------------------------------------------------------------------------------------------
# Which failures are a person's to settle: the kernel refused what the work asks for, and a person
# could allow it.
# No edit of a tool mends those. That the kernel refused is the kernel's own record, of a node that no box can write;
# that the run failed *by it* is told by the fault, which has to say the same sentence. A tool can bring both about
# on purpose, so such a failure is never only dropped: it is counted, a person is told of it, whoever calls the run bad
# makes evidence of it all the same, and where equal work passed without asking there, it is the tool's fault. Of a run
# that a rule ended, a person's word makes evidence where an agent chose what the rule is against (``avoidable``).


FETCH = "fetch"  # the node of such a request
GRANT = "grant"  # in what the kernel answered: a person could allow it
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


def misplaced(task: Task, fault: Fault) -> bool:
    """Whether a file was not found that the task's call names, and that the task gives under another path.

    Of two paths with one last part the call has the one that does not stand in the workspace. A tool that took it all
    the same would answer other calls wrongly. Where it is the end of what was given the tool may have lost the rest.
    """
    if task.call is None or fault.type != FileNotFoundError.__name__:
        return False
    given = [f"/{file.path}" for file in task.inputs]
    for value in task.call.args.values():
        if not isinstance(value, str) or value not in fault.message:
            continue
        path = posixpath.normpath(f"/{value}")
        is_there = any(f"{place}/".startswith(f"{path}/") for place in given)
        alike = [place for place in given if posixpath.basename(place) == posixpath.basename(path)]
        if alike and not is_there and not any(place.endswith(path) for place in alike):
            return True
    return False


def passed_without(parts: InspectContext, run: Run, refused: Step) -> bool:
    """Whether equal work passed without a request to that host: then the tool need not have asked."""
    return any(
        other.passed
        and _host(refused) not in {_host(step) for step in _fetches(parts.journal.steps(other.id))}
        for other in parts.journal.runs_of(run.task_key, parts.policy.look_back.same_work)
    )


def _fetches(steps: Sequence[Step]) -> list[Step]:
    return [step for step in steps if step.node == FETCH]


def _host(step: Step) -> str:
    action = step.action if isinstance(step.action, dict) else {}
    try:
        return urlsplit(str(action.get("url", ""))).netloc.lower()
    except ValueError:
        return ""
