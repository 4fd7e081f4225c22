"""``agentos ask``: a quick question about some files, without a task file."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import typer

from agentos.cli.group import verb
from agentos.cli.output import clean, print_json
from agentos.cli.tasks.waits import ModelWaits, ask_here, tell
from agentos.domain import Json, Result, Run, Step, Task, TaskState
from agentos.errors import UserError, to_type
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.ledger.reading import Reader
from agentos.plaintext import typed_value

app = verb()

_POLL_S = 0.05
_STDIN = "stdin.txt"  # what standard input is called in the workspace
_STDIN_MAX = 64 << 20
_TOLD = 5  # inputs that are named


@app.command(example='agentos ask "Which region sold most?" sales.csv')
def ask(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUESTION [FILE]…",
            help="The question (- reads it from standard input), then files, folders and globs it is about "
            "(- is standard input). With --tool: files only.",
        ),
    ] = None,
    tool: Annotated[str, typer.Option(metavar="NAME", help="Call this tool instead of asking a model.")] = "",
    arg: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An argument of the tool; JSON, else text.")
    ] = None,
    agent: Annotated[str, typer.Option(metavar="NAME", help="The agent that is asked.")] = "default",
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON document on each line: the steps, then how it ended.")
    ] = False,
) -> None:
    """Ask an agent about files, see its steps, get the answer. Exit code 1 when it did not pass."""
    home = Home.find()
    given = list(words or ())
    if arg and not tool:
        raise UserError("--arg is an argument of a tool: name it with --tool.")
    question = "" if tool else _question(given)
    document: dict[str, Json] = {"agent": agent}
    document |= {"call": {"tool": tool, "args": _arguments(arg or [])}} if tool else {"goal": question}
    if not tool:
        from agentos.daemon.intake.filing import require_model

        require_model(home, agent)
    _require_daemon(home)
    with _inputs(given) as inputs:
        task = _add(home, {**document, "inputs": inputs})
    if not as_json:
        _tell_inputs(task)
    try:
        run = _follow(home, task, as_json=as_json)
    except KeyboardInterrupt:
        from agentos.cli.tasks.task import tell_left

        tell_left(Reader(home.ledger), [task])
        raise
    if as_json:
        print_json(_facts(home, task, run), line=True)
    else:
        _tell_answer(home, run)
    raise typer.Exit(0 if run is not None and run.passed else 1)


def _question(given: list[str]) -> str:
    """Taken off the words."""
    question = given.pop(0) if given else ""
    if question == "-":
        if "-" in given:
            raise UserError("Standard input is the question or a file, not both: name one of them otherwise.")
        question = sys.stdin.buffer.read(1 << 20).decode("utf-8", "replace")
    if not question.strip():
        raise UserError(
            "What is the question? Type ",
            to_type("agentos ask 'What do these say?' FILE…"),
            ", or --tool NAME.",
        )
    return question


def _arguments(given: Sequence[str]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for item in given:
        name, is_one, text = item.partition("=")
        if not is_one or not name:
            raise UserError(f"--arg is NAME=VALUE, as in --arg path=notes.txt; found '{item}'.")
        found[name] = typed_value(text)
    return found


def _require_daemon(home: Home) -> None:
    from agentos.daemon.control.daemon_lock import daemon_runs

    if not daemon_runs(home):
        raise UserError("No daemon runs that could do it; type ", to_type("agentos daemon start"), " first.")


@contextmanager
def _inputs(given: Sequence[str]) -> Iterator[list[Json]]:
    """The inputs of a document; standard input is in a file as long as they are read."""
    with tempfile.TemporaryDirectory(prefix="agentos-ask-") as aside:
        inputs: list[Json] = []
        for name in given:
            if name == "-":
                data = sys.stdin.buffer.read(_STDIN_MAX + 1)
                if len(data) > _STDIN_MAX:
                    raise UserError(f"Standard input has more than {_STDIN_MAX:,} bytes; give it as a file.")
                Path(aside, _STDIN).write_bytes(data)
                inputs.append({"path": str(Path(aside, _STDIN)), "as": _STDIN})
            elif Path(name).is_file():
                # equal names in different folders stand beside one another
                pure = PurePosixPath(name)
                below = not pure.is_absolute() and ".." not in pure.parts
                inputs.append({"path": name, "as": str(pure) if below else pure.name})
            else:
                inputs.append(name)
        yield inputs


def _add(home: Home, document: Json) -> Task:
    from agentos.daemon.setup import add_tasks
    from agentos.taskfile import drafts_of

    (task,) = add_tasks(home, drafts_of(json.dumps(document).encode(), "the question", Path.cwd()))
    return task


def _tell_inputs(task: Task) -> None:
    """Where they stand in the workspace: what an argument has to name."""
    if task.inputs:
        more = f" and {len(task.inputs) - _TOLD} more" if len(task.inputs) > _TOLD else ""
        names = ", ".join(file.path for file in task.inputs[:_TOLD])
        print(clean(f"reads {names}{more}"), file=sys.stderr)


def _follow(home: Home, task: Task, *, as_json: bool) -> Run | None:
    """Wait for its end, telling steps and questions as they come; its newest run."""
    reader = Reader(home.ledger)
    told: dict[str, int] = {}
    asked: set[str] = set()
    waits = ModelWaits(home)
    while True:
        view = reader.task_view(task.id)
        (run,) = reader.runs(task.id, limit=1) or (None,)
        if run is not None:
            for step in reader.steps(run.id, after=told.get(run.id, -1)):
                told[run.id] = step.index
                _tell_step(step, as_json=as_json)
        if not as_json and view.state is not TaskState.DONE:
            waits.tell_task(reader, task.id, run)
        if view.state in (TaskState.DONE, TaskState.CANCELLED):
            return run
        for question in reader.open_questions(task.id) if view.state is TaskState.WAITING else ():
            if question.id not in asked:
                asked.add(question.id)
                if as_json:
                    print_json({"asks": question}, line=True)
                elif sys.stdin.isatty() and sys.stdout.isatty():
                    ask_here(home, question)
                else:
                    tell(question)
        _require_daemon(home)
        time.sleep(_POLL_S)


def _tell_step(step: Step, *, as_json: bool) -> None:
    if as_json:
        print_json({"step": step}, line=True)
        return
    action = step.action if isinstance(step.action, dict) else {}
    about = next((f" {action[key]}"[:60] for key in ("tool", "model", "agent") if key in action), "")
    fault = f" {step.fault.type}: {step.fault.message[:160]}" if step.fault else ""
    print(clean(f"{step.index:>3} {step.node:<8}{about}{fault}").rstrip(), file=sys.stderr, flush=True)


def _facts(home: Home, task: Task, run: Run | None) -> dict[str, Any]:
    outcome = run.outcome if run else None
    return {
        "task": task.id,
        "run": run and run.id,
        "result": outcome and outcome.result.value,
        "reason": outcome.reason if outcome else "",
        "answer": BlobStore(home.blobs).expand(run.answer) if run else None,
        "files": run.outputs if run else (),
        "cost": outcome and outcome.cost,
    }


def _tell_answer(home: Home, run: Run | None) -> None:
    if run is None or run.outcome is None:
        raise UserError("It was cancelled before it ran.")
    answer = BlobStore(home.blobs).expand(run.answer)
    if answer is not None:
        if isinstance(answer, str):
            print(clean(answer.rstrip("\n")))
        else:  # for a program as well: what a terminal would obey is written as JSON's escapes
            print_json(answer)
    if run.outcome.result is Result.PASSED:
        print(f"passed  ({run.id}; `agentos run good` or `bad` says what you think of it)", file=sys.stderr)
    else:
        print(
            clean(f"{run.outcome.result.value}: {run.outcome.reason}  (agentos run show {run.id})"),
            file=sys.stderr,
        )
    for file in run.outputs:
        print(
            clean(f"left {file.path} ({file.size:,} bytes; agentos run export {run.id} DIR)"), file=sys.stderr
        )
