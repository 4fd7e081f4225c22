"""``agentos schedule …``: work that comes again, by the clock or by files that arrive."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentos.cli.group import AsJson, Yes, noun
from agentos.cli.output import confirm, print_json, print_table, print_text, short_text, tell_notes
from agentos.daemon.intake.filing import SCHEDULED, find_schedule, remove_schedule
from agentos.daemon.views.json_views import (
    SCHEDULE_RUNS,
    copies_with_runs,
    ended,
    next_due,
    schedule_facts,
    when_text,
)
from agentos.domain import Json, SkippedRun, Task, TaskState
from agentos.errors import UserError
from agentos.home import Home
from agentos.ledger.reading import Reader, TaskView

if TYPE_CHECKING:
    from agentos.ledger.store import Ledger

_LATELY = timedelta(days=1)

app = noun("Repeat work by the clock, or for each file that arrives.")

Id = Annotated[
    str, typer.Argument(metavar="ID", help="The schedule's name, or its id or enough of its start.")
]


@app.command(example="agentos schedule add digest.yaml --cron '0 7 * * 1-5'")
def add(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="A task file; - is standard input.")],
    cron: Annotated[
        str, typer.Option(metavar="LINE", help="Run at these times: a cron line such as '0 7 * * 1-5'.")
    ] = "",
    watch: Annotated[
        str, typer.Option(metavar="FOLDER", help="Run for each file that arrives there instead.")
    ] = "",
    timezone: Annotated[
        str,
        typer.Option(
            metavar="ZONE", help="The zone of the cron line, such as Europe/Berlin; else the machine's."
        ),
    ] = "",
    missed: Annotated[
        str,
        typer.Option(
            metavar="once|skip", help="What to do about times that were missed while no daemon ran."
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Schedule the tasks of a file; options replace what the file says."""
    from agentos.daemon.intake.filing import doubts
    from agentos.daemon.setup import add_tasks
    from agentos.taskfile import MAX_BYTES, drafts_of, read_drafts

    # a folder on the command line is seen from here, one in the file from the file
    folder = os.path.abspath(os.path.expanduser(watch)) if watch else ""
    said = {"schedule": cron, "watch": folder, "timezone": timezone, "missed": missed}
    given: dict[str, Json] = {key: value for key, value in said.items() if value}
    if file == "-":
        drafts = drafts_of(sys.stdin.buffer.read(MAX_BYTES + 1), "standard input", Path.cwd(), given)
    else:
        drafts = read_drafts(Path(file), given)
    if once := [draft.name for draft in drafts if draft.schedule is None and not _watches(draft)]:
        raise UserError(f"Nothing says when '{once[0]}' is to run: add --cron '0 7 * * *' or --watch FOLDER.")
    tasks = add_tasks(home := Home.find(), drafts)
    tell_notes(doubts(home, drafts))
    reader = Reader(home.ledger)
    if as_json:
        print_json([schedule_facts(reader, task) for task in tasks])
        return
    notes = []
    for task in tasks:
        print_text(f"{task.id}  {task.name}: {when_text(task)}{_next(reader, task)}")
        for source in task.sources:
            if not Path(source.path).exists() and not any(letter in source.path for letter in "*?["):
                notes.append(f"not there now: {source.path}; it is read at each run.")
        watched = task.trigger.watch if task.trigger else None
        if watched is not None and not Path(watched.folder).is_dir():
            notes.append(f"not there now: {watched.folder}; its files are taken once it is.")
    tell_notes([*notes, *_same_names(home, tasks)])


def _same_names(home: Home, tasks: Sequence[Task]) -> Iterator[str]:
    """A name that another schedule has: now rather than in the morning."""
    reader = Reader(home.ledger)
    others = [view.task for state in SCHEDULED for view in reader.tasks(state)]
    for task in tasks:
        same = [other.id for other in others if other.name == task.name and other.id != task.id]
        if same:
            yield f"another schedule has the name '{task.name}' and goes on: `agentos schedule remove {same[0]}` ends it."


def _watches(draft: Any) -> bool:
    return draft.trigger is not None and draft.trigger.watch is not None


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List all schedules: when each runs next, and how its last run ended."""
    reader = Reader(Home.find().ledger)
    found = [view for state in SCHEDULED for view in reader.tasks(state)]
    if as_json:
        print_json([schedule_facts(reader, view.task) for view in found])
        return
    print_table(
        ("schedule", "name", "when", "next", "last run", "why"),
        [_row(reader, view) for view in found],
        empty="No schedules yet; `agentos schedule add FILE --cron '0 7 * * *'` adds one.",
        below=True,
    )


def _row(reader: Reader, view: TaskView) -> tuple[str, ...]:
    task, newest = view.task, copies_with_runs(reader, view.task.id, 1)
    last, why = ended(newest[0][0], newest[0][1]) if newest else ("", "")
    skipped = _skipped(reader, task.id, 1)
    if skipped and (not newest or skipped[0].last_at > newest[0][0].task.created_at):
        why = f"skipped {_at(skipped[0].last_at)}: {skipped[0].reason}"
    comes = "paused" if view.state is TaskState.PAUSED else _at(next_due(reader, task))
    return task.id, task.name, when_text(task), comes, last, why


@app.command()
def show(id: Id, as_json: AsJson = False) -> None:
    """Show one schedule: what it does, its last runs, and why times were passed over."""
    reader = Reader(Home.find().ledger)
    view = find_schedule(reader, id)
    task = view.task
    if as_json:
        print_json(schedule_facts(reader, task))
        return
    print_text(f"{task.name}  ({task.id})", "bold")
    print_text(
        f"when       {when_text(task)}{'' if view.state is TaskState.SCHEDULED else ', ' + view.state.value}"
    )
    if view.state is TaskState.SCHEDULED and task.schedule:
        print_text(f"next       {_at(next_due(reader, task))}")
    print_text(f"goal       {task.goal}")
    if task.call:
        print_text(f"call       {task.call.tool} {short_text(dict(task.call.args), 2000)}")
    for source in task.sources:
        new = f", what is new since the {source.newer_than.replace('_', ' ')}" if source.newer_than else ""
        print_text(f"reads      {source.path}{new}")
    for file in task.inputs:
        print_text(
            f"input      {file.path} ({file.size:,} bytes, as it was when it was added; add it again to read it live)"
        )
    for destination in task.deliver:
        where = destination.folder or " ".join(destination.command)
        print_text(f"deliver    {destination.file or 'the answer'} to {where}")
    print_table(
        ("task", "began", "of", "result", "why"),
        [
            (copy.task.id, _at(copy.task.created_at), _read(copy), *ended(copy, run))
            for copy, run in copies_with_runs(reader, task.id, SCHEDULE_RUNS)
        ],
        empty=_not_yet(task),
        below=True,
    )
    for one in _skipped(reader, task.id, SCHEDULE_RUNS):
        times = f"{one.times} times from {_at(one.first_at)} to" if one.times > 1 else "at"
        print_text(f"skipped    {times} {_at(one.last_at)}: {one.reason}", "yellow")


@app.command()
def pause(id: Id) -> None:
    """Pause a schedule until it is resumed."""
    from agentos.daemon.scheduling.schedules import pause as stop

    with _ledger() as ledger:
        task = find_schedule(ledger, id).task
        stop(ledger, task)
    print_text(f"{task.id} is paused; `agentos schedule resume {task.id}` goes on.")


@app.command()
def resume(id: Id) -> None:
    """Resume a schedule at its next time; what was due during the pause is not made up for."""
    from agentos.daemon.scheduling.schedules import resume as go_on

    with _ledger() as ledger:
        task = find_schedule(ledger, id).task
        go_on(ledger, task, datetime.now(UTC))
    print_text(f"{task.id} is scheduled again{_next(ledger, task)}")


@app.command()
def run(id: Id, as_json: AsJson = False) -> None:
    """Queue a run of a schedule now, beside those that are due."""
    from agentos.daemon.scheduling.schedules import run_now
    from agentos.settings import load_settings

    now = datetime.now(UTC)
    with _ledger() as ledger:
        view = find_schedule(ledger, id)
        copy_id, empty = run_now(ledger, view, now, load_settings(Home.find().settings).hold_out)
    if as_json:
        print_json({"task": copy_id})
    else:
        if empty:
            print_text(f"There is {empty.partition(' (')[0]}: it runs with nothing to read.", "yellow")
        print_text(f"{copy_id} is queued; `agentos task show {copy_id}` tells how it went.")


@app.command()
def remove(id: Id, yes: Yes = False) -> None:
    """Remove a schedule. Its runs and what they delivered stay."""
    with _ledger() as ledger:
        task = find_schedule(ledger, id).task
        confirm(f"Remove the schedule {task.name} ({task.id})?", yes=yes)
        remove_schedule(ledger, task)
    print_text(f"{task.id} is removed.")


@contextmanager
def _ledger() -> Iterator[Ledger]:
    from agentos.ledger.store import Ledger

    home = Home.find()
    Reader(home.ledger).close()  # says what to type where there is none
    ledger = Ledger(home.ledger)
    try:
        yield ledger
    finally:
        ledger.close()


def skipped_lately(reader: Reader) -> Mapping[str, SkippedRun]:
    """By the name of each schedule that is not paused: what it passed over last, within a day."""
    found = {}
    for view in reader.tasks(TaskState.SCHEDULED):
        newest = _skipped(reader, view.task.id, 1)
        if newest and newest[0].last_at > datetime.now(UTC) - _LATELY:
            found[view.task.name] = newest[0]
    return found


def tell_skipped(name: str, skipped: SkippedRun) -> None:
    """Show it, and what to type."""
    times = f"{skipped.times} times, last " if skipped.times > 1 else ""
    show = f"`agentos schedule show {skipped.schedule_id}`"
    print_text(
        f"skipped     {name}: {short_text(skipped.reason, 200)}  ({times}{_at(skipped.last_at)}; {show})",
        "yellow",
    )


def _skipped(reader: Reader, schedule_id: str, limit: int) -> Sequence[SkippedRun]:
    return reader.newest(SkippedRun, limit, schedule_id=schedule_id)


def _read(copy: TaskView) -> str:
    """What it was given: the file that arrived, or how many there were."""
    files = copy.task.inputs
    return files[0].path if len(files) == 1 else f"{len(files)} files" if files or copy.task.sources else ""


def _not_yet(task: Task) -> str:
    if task.trigger is not None and (watch := task.trigger.watch) is not None:
        old = (
            "" if watch.existing else "; what lay there before it was added counts only with `existing: true`"
        )
        return f"It has not run yet: put a file into {watch.folder}{old}."
    return f"It has not run yet; `agentos schedule run {task.id}` runs it now."


def _next(reader: Reader, task: Task) -> str:
    return f", next {_at(next_due(reader, task))}" if task.schedule else ""


def _at(moment: datetime | None) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}" if moment else ""
