"""``agentos run …``: what happened."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentos.cli.group import AsJson, Newest, noun
from agentos.cli.output import (
    counted,
    print_json,
    print_table,
    print_text,
    short_text,
    tell_cut,
    time_text,
)
from agentos.cli.runs.feedback import add_to as add_feedback
from agentos.cli.runs.feedback import tell_signals, tell_words
from agentos.cli.tasks.waits import questions_of, tell, tell_delivery
from agentos.daemon.people.answers import chosen, give
from agentos.daemon.views.json_views import handed_below, run_whole, why_text, without_share
from agentos.domain import Delivery, Feedback, Json, KernelFault, MemoryProposal, Question, Result, Run, Step
from agentos.errors import UserError, to_type
from agentos.home import Home
from agentos.ledger.reading import Reader

if TYPE_CHECKING:
    from agentos.evolver.replay.verification import Rerun

_USUAL = 50  # rows of a list
app = noun("Look at runs and their steps, and say which answers are right.")

Id = Annotated[str, typer.Argument(metavar="ID", help="The run's id, or enough of its start or end.")]

_POLL_S = 0.1
_WIDTH = 160


def _reader() -> Reader:
    return Reader(Home.find().ledger)


@app.command("list")
def list_(
    task: Annotated[str | None, typer.Option(metavar="ID", help="Only runs of this task.")] = None,
    result: Annotated[
        str | None, typer.Option(metavar="RESULT", help=f"Only runs with this result: {', '.join(Result)}.")
    ] = None,
    limit: Newest = _USUAL,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    if result is not None and result not in set(Result):
        raise UserError(f"There is no result '{result}'; the results are {', '.join(Result)}.")
    reader = _reader()
    runs = reader.runs(
        None if task is None else reader.resolve("task", task), Result(result) if result else None, limit
    )
    if as_json:
        print_json([without_share(run) for run in runs])
        return
    print_table(
        ("run", "began", "task", "result", "score", "seconds", "why"),
        [
            (
                run.id,
                time_text(run.started_at),
                reader.task(run.task_id).name,
                run.outcome.result.value if run.outcome else "under way",
                f"{run.outcome.score:.2f}" if run.outcome else "",
                f"{run.outcome.cost.wall_s:.2f}" if run.outcome else "",
                _why(run, lost),
            )
            for run, lost in _together(runs)
        ],
        empty="No run is like that; `agentos run list` shows all."
        if task or result
        else "No runs yet; `agentos task run FILE` makes one.",
        below=True,
    )
    tell_cut(len(runs), limit, _USUAL)


def _together(runs: Sequence[Run]) -> Iterable[tuple[Run, list[Run]]]:
    """Each run, and older ones that stand in its line: attempts at its task that what is away ended alike."""
    found: dict[object, tuple[Run, list[Run]]] = {}
    for run in runs:
        fault = run.outcome.fault if run.outcome else None
        away = fault is not None and fault.kind is KernelFault.AWAY
        key = (run.task_id, run.outcome.reason) if away and run.outcome else run.id
        if key in found:
            found[key][1].append(run)
        else:
            found[key] = run, []
    return found.values()


def _why(run: Run, lost: Sequence[Run]) -> str:
    why = why_text(run)
    if not lost:
        return why
    told = f"{len(lost) + 1} times since {time_text(lost[-1].started_at)}"
    return f"{told}: {why}" if why else told


@app.command()
def show(id: Id, as_json: AsJson = False) -> None:
    """Show one run: each step, the answer, the checks, the files that it left."""
    reader = _reader()
    run = reader.run(reader.resolve("run", id))
    if as_json:
        print_json(run_whole(reader, run))
        return
    steps = reader.steps(run.id)
    proposals = reader.find(MemoryProposal, run_id=run.id)
    _tell_head(reader, run)
    for step in steps:
        _tell(step)
    if reader.is_pruned(run):
        print_text(
            "steps      went with all files of the run, as [retention] in the settings says; the outcome stays"
        )
    for depth, task, newest in handed_below(reader, run.task_id):
        ended = newest.outcome.result.value if newest and newest.outcome else "under way"
        print_text(f"handed     {'  ' * depth}{task.name}  ({newest.id if newest else task.id}, {ended})")
    for proposal in proposals:
        print_text(f"proposes   {short_text(proposal.text, _WIDTH)}  ({proposal.id}, {proposal.state.value})")
    if run.outcome is None:
        print_text("under way; `agentos run tail` follows it", "yellow")
        return
    _tell_end(reader, run)
    from agentos.evolver.find.mining import avoidable, yours  # no list needs them

    if what := yours(run.outcome, steps):
        print_text(f"yours      {what}", "yellow")
        again = f". If it should do without: `agentos run bad {run.id}`"
        may = avoidable(reader.task(run.task_id), run.outcome, steps)
        print_text(f"           no edit mends it{again if may else ''}", "yellow")
    tell_signals(reader, run, steps)


def _tell_head(reader: Reader, run: Run) -> None:
    """What it was asked for, and where it ran."""
    print_text(f"{reader.task(run.task_id).name}  ({run.id})", "bold")
    print_text(f"task       {run.task_id}, attempt {run.attempt}")
    print_text(f"snapshot   {run.snapshot.commit[:12]}")
    print_text(f"sandbox    {run.sandbox}, {run.level}{f', on the worker {run.host}' if run.host else ''}")
    if run.resources:  # told by a run that came to its end
        print_text(f"used       {', '.join(run.resources)}")
    if run.parent:
        print_text(f"handed by  {run.parent}")
    if run.regrades:
        print_text(f"graded by  what a person said of {run.regrades}")
    if run.resumes:
        print_text(f"goes on    from {run.resumes}")
    for file in reader.task(run.task_id).inputs:
        print_text(f"given      {file.path} ({file.size:,} bytes, {file.sha256[:12]})")


def _tell_end(reader: Reader, run: Run) -> None:
    assert run.outcome is not None
    colour = "green" if run.outcome.result is Result.PASSED else "red"
    print_text(f"result     {run.outcome.result.value}  {run.outcome.reason}", colour)
    for check in run.outcome.checks:
        print_text(f"check      {'passed' if check.passed else 'FAILED'}  {check.kind}  {check.detail}")
    print_text(f"answer     {short_text(run.answer, 2000)}")
    for file in run.outputs:
        print_text(f"left       {file.path} ({file.size:,} bytes)")
    cost = run.outcome.cost
    print_text(f"took       {cost.wall_s:.2f} s, {cost.cpu_s:.2f} s of CPU")
    if cost.calls:
        served = cost.calls - cost.live_calls
        calls = f"{cost.calls} model call{'' if cost.calls == 1 else 's'}" + (
            f" ({served} from the record)" if served else ""
        )
        usd = "price unknown" if cost.usd is None else f"{cost.usd:.6f} USD"
        print_text(f"asked      {calls}, {cost.tokens:,} tokens, {usd}")
    for flag in reader.flags(run.id):
        print_text(f"flagged    {flag.reason}", "yellow")
    for delivery in reader.find(Delivery, run_id=run.id):
        tell_delivery(delivery)
    tell_words(reader.find(Feedback, run_id=run.id))
    if run.outcome.result is Result.WAITING:
        for question in reader.open_questions(reader.root_of(reader.task(run.task_id)).id):
            tell(question)


@app.command()
def tail(
    id: Annotated[str, typer.Argument(metavar="ID", help="The run; without it, the newest.")] = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON document on each line: the steps, then the run.")
    ] = False,
) -> None:
    """Follow a run step by step until it ends."""
    from agentos.daemon.control.daemon_lock import daemon_runs

    home = Home.find()
    reader = Reader(home.ledger)
    newest = reader.runs(limit=1)
    if not newest:
        raise UserError("No runs yet; ", to_type("agentos task run FILE"), " makes one.")
    run_id = reader.resolve("run", id) if id else newest[0].id
    told = -1
    while True:
        run = reader.run(run_id)
        for step in reader.steps(run_id, after=told):
            told = step.index
            if as_json:
                print_json(step, line=True)
            else:
                _tell(step)
        if run.outcome is not None and as_json:
            print_json(without_share(run), line=True)
            return
        if run.outcome is not None:
            print_text(f"result     {run.outcome.result.value}  {run.outcome.reason}")
            return
        if not daemon_runs(home):
            raise UserError(
                f"No daemon is at work on {run_id}. ",
                to_type("agentos daemon start"),
                " goes on with its task.",
            )
        time.sleep(_POLL_S)


@app.command()
def answer(
    id: Annotated[
        str,
        typer.Argument(metavar="ID", help="The run, its task, or the question; without it, all are shown."),
    ] = "",
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Your answer.")] = "",
    choice: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Your answer by its number, where there is a choice."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question of a run, so that its task goes on. Without an answer: show what is asked."""
    home = Home.find()
    reader = _reader()
    questions = questions_of(reader, id) if id else reader.open_questions()
    if not text and not choice:
        if as_json:
            print_json(questions)
        elif not questions:
            print_text("Nobody asks anything.")
        for question in [] if as_json else questions:
            print_text(f"{reader.task(question.root_id).name}  ({question.run_id})", "bold")
            tell(question)
        return
    if not questions:
        raise UserError("Nobody asks anything; ", to_type("agentos status"), " shows what waits for you.")
    if len(questions) > 1:
        some = ", ".join(question.id for question in questions)
        raise UserError(f"More than one thing is asked: say which question you answer: {some}.")
    (question,) = questions
    given = chosen(question, text, choice or 0)
    give(home, question, given)
    if as_json:
        print_json(reader.get(Question, question.id))
    else:
        left = len(reader.open_questions(question.root_id))
        print_text(f"Answered: {given}" + (f" ({left} more to answer before it goes on)" if left else ""))


add_feedback(app)


@app.command()
def deliver(id: Id, as_json: AsJson = False) -> None:
    """Deliver again what could not be delivered; a running daemon does it."""
    from datetime import UTC, datetime

    from agentos.daemon.run.delivery import again
    from agentos.ledger.store import Ledger

    home = Home.find()
    run_id = _reader().resolve("run", id)
    ledger = Ledger(home.ledger)
    try:
        queued = again(ledger, run_id, datetime.now(UTC))
    finally:
        ledger.close()
    if as_json:
        print_json(queued)
    for delivery in () if as_json else queued:
        tell_delivery(delivery)


@app.command()
def replay(id: Id, as_json: AsJson = False) -> None:
    """Replay a finished run from its record, and say what differs and why. Exit code 1 when something does."""
    from agentos.daemon.service import service
    from agentos.evolver.replay.verification import rerun
    from agentos.settings import load_settings

    home = Home.find()
    reader = Reader(home.ledger)
    run = reader.run(reader.resolve("run", id))
    with service(home, load_settings(home.settings), socket_name="replay.sock") as parts:
        parts.sandbox.start()
        found = rerun(parts.parts, run, parts.registry.find_tool)
    if as_json:
        print_json(found)
    else:
        _tell_replay(found)
    raise typer.Exit(1 if found.cause else 0)


def _tell_replay(found: Rerun) -> None:
    if found.cause:
        where = "" if found.step is None else f" at step {found.step}"
        print_text(f"{found.run_id} differs{where}: {found.why}.", "yellow")
        if found.before != found.now:
            print_text(f"It was {found.before}, and is {found.now}.")
    elif found.calls:
        print_text(f"{found.calls} of its calls were made again and gave the same.")
    else:
        print_text(f"{found.run_id} was run again from its record: the same.")
    if found.passed_over:
        print_text(f"{found.passed_over} calls of tools that are not here were passed over.")


@app.command()
def export(
    id: Id, folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty directory.")]
) -> None:
    """Export a run as plain files: record, steps, answer, and the files that it left."""
    count = _exported(Home.find(), id, folder)
    print_text(f"{counted(count, 'file')} in {folder}.")


def _exported(home: Home, fragment: str, folder: Path) -> int:
    """Write task, run, steps (big values whole) and ``files/`` into ``folder``; how many files."""
    from dataclasses import asdict

    from agentos.ledger.blobs import BlobStore

    reader = Reader(home.ledger)
    run = reader.run(reader.resolve("run", fragment))
    blobs = BlobStore(home.blobs)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not an empty directory; name a new one")
    files = folder / "files"
    files.mkdir(parents=True, exist_ok=True)
    steps = [
        asdict(step) | {"action": blobs.expand(step.action), "observation": blobs.expand(step.observation)}
        for step in reader.steps(run.id)
    ]
    _write_json(folder / "task.json", asdict(reader.task(run.task_id)))
    _write_json(folder / "run.json", asdict(run) | {"answer": blobs.expand(run.answer)})
    _write(folder / "steps.jsonl", "".join(_json(step) + "\n" for step in steps))
    for file in run.outputs:
        # the paths were checked when they were read from the box: relative, printable, no ".."
        place = files / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(blobs.get(file.sha256))
    return 3 + len(run.outputs)


def _write_json(path: Path, value: Json) -> None:
    _write(path, _json(value, indent=2) + "\n")


def _write(path: Path, text: str) -> None:
    # half a character is JSON's own escape
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def _json(value: Json, indent: int | None = None) -> str:
    import json

    return json.dumps(value, indent=indent, ensure_ascii=False, default=_plain)


def _plain(item: object) -> str:
    return item.isoformat() if isinstance(item, datetime) else str(item)


def _tell(step: Step) -> None:
    said = f"{step.fault.type}: {step.fault.message}" if step.fault else _seen(step)
    print_text(
        f"{step.index:>4} {step.node:<8} {step.duration_ms:8.1f} ms  {short_text(step.action, _WIDTH)}  →  {said}",
        "red" if step.fault else "",
    )


def _seen(step: Step) -> str:
    """What was observed; of a model's reply the words and the calls, and what it cost."""
    seen = step.observation
    if step.node != "model" or not isinstance(seen, dict) or "usage" not in seen:
        return short_text(seen, _WIDTH)
    usage = seen["usage"]
    cost = f"{usage['input_tokens']:,} + {usage['output_tokens']:,} tokens"
    cost += "" if seen.get("usd") is None else f", {seen['usd']:.6f} USD"
    if "error" in seen:  # it came to nothing and is booked all the same
        said: object = f"{seen['error']}: {seen.get('message', '')}"
    else:
        message = seen.get("message") or {}
        said = message.get("content") or [call["function"] for call in message.get("tool_calls") or ()]
    return f"({'from the record' if seen.get('recorded') else cost}) {short_text(said, _WIDTH)}"
