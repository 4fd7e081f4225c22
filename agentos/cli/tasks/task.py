"""``agentos task …``: say what is to be done, and see where it stands."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentos.cli.group import AsJson, Newest, noun
from agentos.cli.output import (
    clean,
    counted,
    print_json,
    print_table,
    print_text,
    short_text,
    tell_cut,
    tell_notes,
    time_text,
)
from agentos.cli.tasks.waits import ModelWaits, ask_here, tell, tell_delivery
from agentos.daemon.views.json_views import task_facts, task_whole, why_text
from agentos.domain import Outcome, Question, Run, Step, Task, TaskState
from agentos.errors import UserError, to_type
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.schedules import copies, without_copies

if TYPE_CHECKING:
    from rich.text import Text

    from agentos.taskfile import Draft


_USUAL = 100  # rows of a list
app = noun("Add, run, list, show and cancel tasks (units of work, each with a goal or a call of a tool).")

Id = Annotated[str, typer.Argument(metavar="ID", help="The task's id, or enough of its start or end.")]
File = Annotated[str, typer.Argument(metavar="FILE|-", help="A YAML or JSON task file; - is standard input.")]

_POLL_S = 0.05
_COLOUR = {"passed": "green", "failed": "red", "timeout": "red", "budget": "red", "infra": "yellow"}
_ENDED = (TaskState.DONE, TaskState.CANCELLED)


@app.command()
def add(file: File, as_json: AsJson = False) -> None:
    """Queue the tasks of a file; they are safe on disk when this returns."""
    from agentos.daemon.control.daemon_lock import daemon_runs

    home = Home.find()
    tasks = _add(home, file)
    if as_json:
        print_json([task.id for task in tasks])
    else:
        for task in tasks:
            print_text(f"{task.id}  {task.name}")
    if not daemon_runs(home):
        print("No daemon runs yet; `agentos daemon start` starts one.", file=sys.stderr)


@app.command()
def run(file: File, as_json: AsJson = False) -> None:
    """Queue the tasks of a file and wait for them. Exit code 1 when one did not pass."""
    from agentos.daemon.control.daemon_lock import daemon_runs

    home = Home.find()
    if not daemon_runs(home):
        raise UserError("No daemon runs that could do it; type ", to_type("agentos daemon start"), " first.")
    tasks = _add(home, file)
    waiting = [task for task in tasks if not task.recurs]
    reader = Reader(home.ledger)
    for task in tasks:
        if task.recurs and not as_json:
            print_text(f"scheduled {task.name}  ({task.id}; `agentos schedule show {task.id}`)")
    try:
        passed = _follow(home, reader, waiting, quiet=as_json)
    except KeyboardInterrupt:
        tell_left(reader, waiting)
        raise
    if as_json:
        print_json([task_facts(reader, task.id) for task in tasks])
    raise typer.Exit(0 if passed else 1)


@app.command("list")
def list_(
    state: Annotated[
        str | None, typer.Option(metavar="STATE", help=f"Only those in this state: {', '.join(TaskState)}.")
    ] = None,
    limit: Newest = _USUAL,
    every: Annotated[
        bool, typer.Option("--all", help="Show each run of a schedule in a row of its own.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List tasks in the order in which they were added, with the newest result; a schedule is one row."""
    if state is not None and state not in set(TaskState):
        raise UserError(f"There is no state '{state}'; the states are {', '.join(TaskState)}.")
    reader = Reader(Home.find().ledger)
    only = TaskState(state) if state else None
    views = reader.tasks(only, limit) if every else without_copies(reader, only, limit)
    if as_json:
        print_json([task_facts(reader, view.task.id) for view in views])
        return
    rows = []
    for view in views:
        last = view
        if view.task.recurs:
            (last,) = copies(reader, view.task.id, 1) or (view,)
        newest = _newest(reader, last.task.id)
        outcome = newest.outcome if newest else None
        why = _asked(last.state) + why_text(newest) if newest and outcome else ""
        if last is not view and outcome:
            why = f"last {outcome.result.value}{f': {why}' if why else ''}"
        rows.append(
            (
                view.task.id,
                time_text(view.task.created_at),
                f"  ↳ {view.task.name}" if view.task.parent else view.task.name,
                _standing(view.state, outcome),
                why,
            )
        )
    print_table(
        ("task", "added", "name", "state", "why"),
        rows,
        below=True,
        empty=f"No task is {state}; `agentos task list` shows all."
        if state
        else "No tasks yet; `agentos task add FILE` adds some.",
    )
    tell_cut(len(views), limit, _USUAL)


@app.command()
def again(id: Id, as_json: AsJson = False) -> None:
    """Queue the same work once more as a new task with the same inputs; nothing is delivered.

    The id of a run stands for its task.
    """
    from agentos.daemon.intake.filing import queue_again

    home = Home.find()
    reader = Reader(home.ledger)
    task_id = (
        reader.run(reader.resolve("run", id)).task_id if id.startswith("run-") else reader.resolve("task", id)
    )
    task = queue_again(home, task_id)
    if as_json:
        print_json(task.id)
    else:
        print_text(f"{task.id}  {task.name}")


@app.command("from-run", example="agentos task from-run run-4k2 --expect 1581 -o words.yaml")
def from_run(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id, or enough of its start or end.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="A new file; else standard output.")
    ] = None,
    expect: Annotated[str, typer.Option(metavar="TEXT", help="A text that the answer has to contain.")] = "",
) -> None:
    """Write a task file from a run: its goal, its inputs, and a proposed check."""
    from agentos.cli.tasks.from_run import write_task

    write_task(run, output, expect)


@app.command()
def show(id: Id, as_json: AsJson = False) -> None:
    """Show one task: what was asked, and each run of it."""
    reader = Reader(Home.find().ledger)
    task_id = reader.resolve("task", id)
    view = task_whole(reader, task_id)
    if as_json:
        print_json(view)
        return
    _tell_task(reader, view)
    print_table(
        ("run", "attempt", "snapshot", "result", "seconds", "why"),
        [
            (run.id, run.attempt, run.snapshot.commit[:10], _result(run.outcome), _seconds(run), _why(run))
            for run in reversed(reader.runs(task_id))
        ],
        empty="It has not run yet.",
    )
    for delivery in view["deliveries"]:
        tell_delivery(delivery)
    for question in view["questions"]:
        tell(question)


def _tell_task(reader: Reader, view: Mapping[str, Any]) -> None:
    """What was asked, and of what."""
    task: Task = view["task"]
    print_text(f"{task.name}  ({task.id})", "bold")
    print_text(f"state      {view['state'].value}")
    print_text(f"goal       {task.goal}")
    if task.call:
        print_text(f"call       {task.call.tool} {short_text(dict(task.call.args), 2000)}")
    for file in task.inputs:
        print_text(f"input      {file.path} ({file.size:,} bytes)")
    for source in task.sources:
        print_text(f"reads      {source.path}, when it runs")
    for left in _left_out(reader, task.id):
        print_text(f"left out   {left}", "yellow")
    if task.recurs:
        print_text(f"schedule   {task.schedule or 'files that arrive'}  (`agentos schedule show {task.id}`)")
    if task.schedule_id:
        print_text(f"started by {task.schedule_id}")
    if task.parent:
        print_text(f"part of    {task.parent}")
    for check in task.checks:
        print_text(f"check      {check.kind} {dict(check.spec)}")


@app.command()
def cancel(id: Id) -> None:
    """Cancel a task: take it out of the queue, or stop it. A scheduled task runs no more."""
    from agentos.daemon.intake.filing import cancel_task
    from agentos.ledger.store import Ledger

    home = Home.find()
    task_id = Reader(home.ledger).resolve("task", id)
    ledger = Ledger(home.ledger)
    try:
        cancel_task(ledger, task_id)
    finally:
        ledger.close()
    print_text(f"{task_id} is cancelled.")


def _add(home: Home, file: str) -> list[Task]:
    from agentos.daemon.intake.filing import doubts
    from agentos.daemon.setup import add_tasks

    tasks = add_tasks(home, drafts := _drafts(file))
    tell_notes(doubts(home, drafts))
    return tasks


def _drafts(file: str) -> Sequence[Draft]:
    from agentos.taskfile import MAX_BYTES, drafts_of, read_drafts

    if file == "-":
        return drafts_of(sys.stdin.buffer.read(MAX_BYTES + 1), "standard input", Path.cwd())
    return read_drafts(Path(file))


def _follow(home: Home, reader: Reader, tasks: Sequence[Task], *, quiet: bool) -> bool:
    """Wait until all have ended, telling each end as it comes; whether all passed."""
    from agentos.daemon.control.daemon_lock import daemon_runs

    left = {task.id: task for task in tasks}
    passed = True
    steps: Counter[str] = Counter()
    asked: set[str] = set()
    waits = ModelWaits(home)
    alone = len(tasks) == 1
    while left:
        for task_id, state in reader.states(left).items():
            run = _newest(reader, task_id) if alone or state in _ENDED else None
            if not quiet and alone and run is not None:
                _tell_steps(reader, run, steps)
                waits.tell(run.id)
            elif not quiet and state is TaskState.QUEUED:
                waits.tell_queued(reader, task_id)
            if state is TaskState.WAITING:
                fresh = [one for one in reader.open_questions(task_id) if one.id not in asked]
                asked |= {one.id for one in fresh}
                _ask(home, fresh, quiet=quiet)
            if state not in _ENDED:
                continue
            task = left.pop(task_id)
            passed = passed and run is not None and run.passed
            if not quiet:
                counter = f"[{len(tasks) - len(left)}/{len(tasks)}] " if len(tasks) > 1 else ""
                _tell_end(counter, task, state, run)
        if left:
            if not daemon_runs(home):
                raise UserError(
                    f"The daemon ended; {counted(len(left), 'task')} left. ",
                    to_type("agentos daemon start"),
                    " goes on.",
                )
            time.sleep(_POLL_S)
    return passed


def tell_left(reader: Reader, tasks: Sequence[Task]) -> None:
    """After Ctrl-C: the daemon goes on with what is not over."""
    states = reader.states([task.id for task in tasks])
    left = [task_id for task_id, state in states.items() if state not in _ENDED]
    if left:
        shown = left[0] if len(left) == 1 else f"{left[0]} and {len(left) - 1} more"
        told = f"`agentos task show {left[0]}` tells how it went, `agentos task cancel {left[0]}` ends it"
        print(f"\nThe daemon goes on with {shown}; {told}.", file=sys.stderr)


def _ask(home: Home, questions: Sequence[Question], *, quiet: bool) -> None:
    """Ask whoever sits here; else say who may answer, and how."""
    for question in questions:
        if quiet:
            print(f"A run asks: {clean(question.text)}  (agentos run answer {question.id})", file=sys.stderr)
        elif sys.stdin.isatty() and sys.stdout.isatty():
            ask_here(home, question)
        else:
            tell(question)


def _tell_steps(reader: Reader, run: Run, told: Counter[str]) -> None:
    if run.attempt > 1 and run.id not in told:
        before = reader.runs(run.task_id, limit=2)[-1].outcome
        print_text(
            f"attempt {run.attempt}" + (f", after {before.result.value}: {before.reason}" if before else "")
        )
        told[run.id] = 0  # also where no step of it is there yet
    for step in reader.steps(run.id, after=told[run.id] - 1):
        mark = f" {step.fault.type}: {step.fault.message[:120]}" if step.fault else ""
        print_text(f"  {step.index:>3} {step.node:<8} {step.duration_ms:8.1f} ms{_of(step)}{mark}", "dim")
        told[run.id] = step.index + 1


def _of(step: Step) -> str:
    """Which tool, model or agent a step was about."""
    if not isinstance(step.action, Mapping):
        return ""
    return next((f" {step.action[key]}"[:40] for key in ("tool", "model", "agent") if key in step.action), "")


def _tell_end(counter: str, task: Task, state: TaskState, run: Run | None) -> None:
    outcome = run.outcome if run else None
    result = _result(outcome) or state.value
    print_text(f"{counter}{result:<8} {task.name}  ({run.id if run else task.id})", _COLOUR.get(result, ""))
    if outcome is not None and outcome.reason:
        print_text(f"         {outcome.reason[:400]}")
    if run is not None and run.passed:
        print_text(f"         {clean(short_text(run.answer, 400))}", "dim")


def _left_out(reader: Reader, task_id: str) -> Sequence[str]:
    """What lay among its inputs and is no plain file."""
    read = [entry for entry in reader.entries(subject=task_id) if entry.event == "task.inputs_read"]
    return read[-1].detail.get("left_out", ()) if read else ()


def _newest(reader: Reader, task_id: str) -> Run | None:
    runs = reader.runs(task_id, limit=1)
    return runs[0] if runs else None


def _result(outcome: Outcome | None) -> str:
    return outcome.result.value if outcome else ""


def _asked(state: TaskState) -> str:
    return "waiting for an answer (`agentos run answer`): " if state is TaskState.WAITING else ""


def _standing(state: TaskState, outcome: Outcome | None) -> Text:
    """How a task that is done ended, else where it stands."""
    from rich.text import Text

    word = outcome.result.value if outcome and state is TaskState.DONE else state.value
    return Text(word, style=_COLOUR.get(word, ""))


def _seconds(run: Run) -> str:
    return f"{run.outcome.cost.wall_s:.2f}" if run.outcome else "…"


def _why(run: Run) -> str:
    return run.outcome.reason[:120] if run.outcome else "under way"


# --- ``agentos task checks``: what decides over the tasks of a name, and what held in all good runs


@app.command()
def checks(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tasks' name, or the id of one.")],
    accept: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Make this suggestion a check of all later tasks. Repeatable."),
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Take back an accepted check. Repeatable.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the checks of the tasks of a name, and those that good runs suggest."""
    from agentos.daemon.standing_checks import accept as take_in
    from agentos.daemon.standing_checks import checks_for, name_of, take_back

    home = Home.find()
    name = name_of(home, name)
    take_in(home, name, accept or ())
    take_back(home, name, remove or ())
    found = checks_for(home, name)
    if as_json:
        proposed = [{"id": item.id, **asdict(item)} for item in found.proposed]
        print_json({"name": name, **asdict(found), "proposed": proposed})
        return
    print_text(name, "bold")
    rows = [("in the task", "", check.kind, _checks_of(check.spec)) for check in found.own]
    rows += [("accepted", item.id, item.check.kind, _checks_of(item.check.spec)) for item in found.accepted]
    rows += [("proposed", item.id, item.check.kind, item.says) for item in found.proposed]
    print_table(
        ("standing", "id", "kind", "what"),
        rows,
        below=True,
        empty=f"No check decides over it, and {counted(found.runs, 'good run')} showed nothing that held in all.",
    )
    if found.proposed:
        print_text(
            f"Read off {counted(found.runs, 'good run')}; `agentos task checks '{name}' --accept {found.proposed[0].id}` "
            "makes the first a check of all later tasks."
        )


def _checks_of(spec: object) -> str:
    assert hasattr(spec, "items")
    return " ".join(f"{key}={value}" for key, value in spec.items() if key != "made_by").strip()
