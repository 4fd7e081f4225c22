"""What ``--json`` tells of each noun, as data: the command line, the API and MCP say the same in the same words.

The share of work (which of it is held out) is in none of them: proposers, and whoever writes them, are not to learn it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agentos.daemon.control.daemon_lock import daemon_info
from agentos.domain import (
    Candidate,
    Delivery,
    Evolution,
    EvolutionState,
    Feedback,
    MemoryProposal,
    RefusalKind,
    Run,
    SkippedRun,
    Step,
    Task,
    TaskState,
    TrialSet,
    Verdict,
)
from agentos.home import Home
from agentos.ledger.reading import EvolutionRecords, Reader, TaskView
from agentos.ledger.schedules import copies

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from agentos.evolver.find.signals import Deviation, SignalHit


_ASKED = frozenset(RefusalKind) - {RefusalKind.FRESH}  # reasons beside a promotion that only a person settles
_HIDDEN = (TrialSet.HOLD_OUT, TrialSet.FRESH)  # of fresh work some is hidden
SCHEDULE_RUNS = 10  # copies of a schedule, and times that were skipped


def task_facts(reader: Reader, task_id: str) -> dict[str, Any]:
    """A task, its state, the result of its newest run, and its runs with what they delivered. Raises NotFound."""
    view = reader.task_view(task_id)
    runs = reader.runs(task_id)
    outcome = runs[0].outcome if runs else None
    delivered = (
        [one for run in runs for one in reader.find(Delivery, run_id=run.id)] if view.task.deliver else []
    )
    return {
        "task": view.task,
        "state": view.state,
        "result": outcome.result.value if outcome else None,
        "runs": [without_share(run) for run in runs],
        "deliveries": delivered,
    }


def task_whole(reader: Reader, task_id: str) -> dict[str, Any]:
    """The same with what it waits for."""
    facts = task_facts(reader, task_id)
    return {**facts, "questions": reader.open_questions(reader.root_of(facts["task"]).id)}


def without_share(run: Run) -> dict[str, Any]:
    """The run as data, without its share."""
    return {name: getattr(run, name) for name in Run.__slots__ if name != "share"}


def run_whole(reader: Reader, run: Run) -> dict[str, Any]:
    """A run with its steps, and all that was said and made of it."""
    steps = reader.steps(run.id)
    signs, deviation = run_signals(reader, run, steps)
    return {
        "run": without_share(run),
        "steps": steps,
        "flags": reader.flags(run.id),
        "handed": [newest.id for _, _, newest in handed_below(reader, run.task_id) if newest],
        "proposals": reader.find(MemoryProposal, run_id=run.id),
        "inputs": reader.task(run.task_id).inputs,
        "deliveries": reader.find(Delivery, run_id=run.id),
        "feedback": reader.find(Feedback, run_id=run.id),
        "signals": signs,
        "deviation": deviation,
    }


def handed_below(reader: Reader, task_id: str, depth: int = 0) -> Iterator[tuple[int, Task, Run | None]]:
    """The tasks that runs of this one handed over, each with its newest run, as a tree."""
    for view in reader.handed_over(task_id):
        if view.task.parent == task_id:
            (newest,) = reader.runs(view.task.id, limit=1) or (None,)
            yield depth, view.task, newest
            yield from handed_below(reader, view.task.id, depth + 1)


def run_signals(
    reader: Reader, run: Run, steps: Sequence[Step]
) -> tuple[tuple[SignalHit, ...], Deviation | None]:
    """The signals in the steps, and how the run differs from the others of its task; nothing while it runs."""
    from agentos.evolver.find.signals import OTHERS_MAX, deviation, read_signals

    if run.outcome is None:
        return (), None
    others = [other for other in reader.runs_of(run.task_key, OTHERS_MAX + 1) if other.id != run.id]
    beside = (found for other in others[:OTHERS_MAX] if (found := reader.steps(other.id)))
    return read_signals(steps), deviation(steps, beside)


def evolution_summary(reader: Reader, evolution: Evolution) -> dict[str, Any]:
    """The evolution with the resource and the edit that it came to."""
    return {**asdict(evolution), "resource": evolution.resource, "edit": edit_of(reader, evolution)}


def edit_of(reader: Reader, evolution: Evolution) -> str:
    """What the edit that it came to does, "" where it came to none."""
    return reader.get(Candidate, evolution.candidate_id).edit.summary if evolution.candidate_id else ""


def short_reason(reader: Reader, evolution: Evolution) -> str:
    """Why it stands where it does, in a line; of an edit about which a person is asked what it does, for the questions are long."""
    found = reader.find(Verdict, candidate_id=evolution.candidate_id) if evolution.candidate_id else ()
    asked = {kind for kind in found[-1].kinds if kind in _ASKED} if found else set()
    if evolution.state is not EvolutionState.AWAITING_CONSENT or not asked:
        return evolution.reason
    return f"asks about {evolution.resource}, {edit_of(reader, evolution)}"


def evolution_whole(story: EvolutionRecords) -> dict[str, Any]:
    """The story with the edit of each candidate, but without consent tokens.

    Of hidden tasks only how they ended is told, under the names ``hidden-1``, ``hidden-2``, …
    """
    data = asdict(story)
    for consent in data["consents"]:
        del consent["token"]
    hidden = dict.fromkeys(trial.task_id for trial in story.trials if trial.set in _HIDDEN)
    names = {task_id: f"hidden-{number}" for number, task_id in enumerate(hidden, 1)}
    for trial in data["trials"]:
        if trial["task_id"] in names:
            trial |= dict.fromkeys(("id", "run_id", "recording"), "") | {"task_id": names[trial["task_id"]]}
            trial["outcome"] |= {"reason": "", "fault": None, "checks": ()}
    again = [item["reexamination"] for item in data["candidates"] if item["reexamination"]]
    for record in (*data["verdicts"], *again, data["attestation"] or {}):
        for field, value in record.items():
            if isinstance(value, tuple):
                record[field] = tuple(names.get(item, item) for item in value)
    return data


def schedule_facts(reader: Reader, task: Task) -> dict[str, Any]:
    """A schedule: when it comes, how its last runs ended, and which times were passed over."""
    runs = [
        {"task": view.task.id, "began": view.task.created_at, "state": view.state, "run": run and run.id}
        | dict(zip(("result", "why"), ended(view, run), strict=True))
        for view, run in copies_with_runs(reader, task.id, SCHEDULE_RUNS)
    ]
    state = reader.task_view(task.id).state
    return {
        "schedule": task,
        "state": state,
        "when": when_text(task),
        "next": next_due(reader, task) if state is TaskState.SCHEDULED else None,
        "runs": runs,
        "skipped": reader.newest(SkippedRun, SCHEDULE_RUNS, schedule_id=task.id),
    }


# --- What a screen or a page shows of a schedule: when it comes, and how its copies ended --------


def copies_with_runs(reader: Reader, schedule_id: str, limit: int) -> Sequence[tuple[TaskView, Run | None]]:
    """The newest copies of a schedule, each with its newest run; newest first."""
    found = []
    for view in copies(reader, schedule_id, limit):
        (newest,) = reader.runs(view.task.id, limit=1) or (None,)
        found.append((view, newest))
    return found


def ended(view: TaskView, run: Run | None) -> tuple[str, str]:
    """How a copy ended, or where it stands, and why."""
    if run is None or run.outcome is None or view.state is not TaskState.DONE:
        return view.state.value, ""
    return run.outcome.result.value, run.outcome.reason[:200]


def why_text(run: Run) -> str:
    """Why it ended so; of one that a person's word graded anew, first which one that was."""
    why = run.outcome.reason if run.outcome else ""
    if not run.regrades:
        return why
    told = f"what a person said of {run.regrades}"
    return f"{told}: {why}" if why else told


def when_text(task: Task) -> str:
    """When it comes: its cron line, or the folder that it watches."""
    if task.trigger is not None and task.trigger.watch is not None:
        watch = task.trigger.watch
        return f"each {'file' if watch.pattern == '*' else watch.pattern} that arrives in {watch.folder}"
    zone = task.trigger.timezone if task.trigger else ""
    return f"{task.schedule}{f' ({zone})' if zone else ''}"


def next_due(reader: Reader, task: Task) -> datetime | None:
    """When it comes next, where it names no zone by the clock of the daemon that runs; None for one that watches a folder."""
    if not task.schedule:
        return None
    # croniter, which lists of tasks do without
    from agentos.daemon.scheduling.clock import due_after, zone_of_process

    zone: str | ZoneInfo = task.trigger.timezone if task.trigger else ""
    info = None if zone else daemon_info(Home(reader.path.parent))
    if info is not None and info.alive:
        zone = zone_of_process(info.pid) or ""
    return due_after(task.schedule, zone, datetime.now(UTC))
