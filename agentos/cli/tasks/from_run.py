"""What ``agentos task from-run`` does: a task file that a person completes, and the inputs beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import dropwhile, islice
from pathlib import Path
from typing import Any

import yaml

from agentos.cli.output import counted, print_text
from agentos.domain import IMPORT, Feedback, Json, Result, Run, Task
from agentos.errors import ErrorKind, UserError
from agentos.home import Home

_LONG = 300  # characters of an answer that is still proposed as a whole, and of a remark
_NOTES = 5


def write_task(id: str, output: Path | None, expect: str) -> None:
    """To ``output`` with its inputs in ``NAME-inputs/`` beside it, or to standard output without them."""
    from agentos.ledger.blobs import BlobStore
    from agentos.ledger.reading import Reader
    from agentos.trajectories.past import conversation_parts

    home = Home.find()
    reader, blobs = Reader(home.ledger), BlobStore(home.blobs)
    run = reader.run(reader.resolve("run", id))
    task = reader.task(run.task_id)
    folder = Path() if output is None else output.parent / f"{output.stem}-inputs"
    if task.inputs:
        _refuse_without(task, run, output, pruned=reader.is_pruned(run))
    words = reader.find(Feedback, run_id=run.id)
    notes = [word.because for word in words if word.because]
    messages = conversation_parts(reader.steps(run.id))[1] if run.sandbox == IMPORT else []
    notes += said_later(messages)
    if expect:
        checks: list[Json] = [{"contains": {"value": expect}}]
        why = "The check is what you expect of the answer."
    else:
        checks, why = proposed_checks(task, run, blobs.expand(run.answer), words, messages)
    document = _asked_again(task, run)
    if output is not None and task.inputs:
        document["inputs"] = [{"path": f"{folder.name}/{file.path}", "as": file.path} for file in task.inputs]
    document["checks"] = checks
    remarks = "".join(f"# Said of it: {_line(note)}\n" for note in notes)
    text = f"# From {run.id}.\n# {why}\n{remarks}" + yaml.safe_dump(
        document, sort_keys=False, allow_unicode=True
    )
    if output is None:
        print(text, end="")
        return
    for place in (output, *([folder] if task.inputs else [])):
        if os.path.lexists(place):
            raise UserError(f"{place} exists already; name a new file.", kind=ErrorKind.TAKEN)
    for file in task.inputs:
        place = folder / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(blobs.get(file.sha256))
    with open(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as opened:
        opened.write(text.encode())
    print_text(f"{output} is written. {why}")


def _asked_again(task: Task, run: Run) -> dict[str, Any]:
    """What a task file says of the same task, without its inputs and checks."""
    document: dict[str, Any] = {"name": task.name[:200] or run.id, "goal": task.goal[:100_000]}
    if task.call is not None:
        document["call"] = {"tool": task.call.tool, "args": dict(task.call.args)}
    if run.sandbox != IMPORT and task.agent != "default":
        document["agent"] = task.agent
    if task.effects and run.sandbox != IMPORT:
        document["effects"] = [effect.value for effect in task.effects]
    return document


def _refuse_without(task: Task, run: Run, output: Path | None, *, pruned: bool) -> None:
    """Raises UserError where the task's input files cannot be written, or have no place."""
    if pruned:
        raise UserError(f"what {run.id} was given went with its steps, as [retention] in the settings says.")
    if output is None:
        raise UserError(
            f"{run.id} had {counted(len(task.inputs), 'input file')}; name a file to write them beside: -o FILE."
        )


def proposed_checks(
    task: Task, run: Run, answer: Json, words: Sequence[Feedback], messages: Sequence[Json] = ()
) -> tuple[list[Json], str]:
    """Checks as a task file has them, and where they come from, in one sentence.

    ``messages``: of a run that was made elsewhere, in which somebody may have put the answer right.
    """
    from agentos.trajectories.conversations import corrected_values

    corrected = [check for word in words for check in word.checks]
    if task.checks or corrected:
        whose = " and ".join(
            name
            for name, there in (("the task's own", task.checks), ("what was said of the run", corrected))
            if there
        )
        specs = [(check.kind, dict(check.spec)) for check in (*task.checks, *corrected)]
        return [
            {kind: {key: value for key, value in spec.items() if key != "made_by"}} for kind, spec in specs
        ], f"The checks are {whose}."
    result = run.outcome.result if run.outcome else None
    if result is Result.PASSED and answer is not None:
        if isinstance(answer, str) and len(answer) > _LONG:
            return [], "The answer is long: say in `checks` what of it has to be there."
        return [
            {"equals": {"value": answer}}
        ], "The check is proposed from the answer, which passed: read it first."
    if put_right := corrected_values(messages):
        return (
            [{"contains": {"value": value}} for value in put_right],
            "The checks are what was put right in the session, and what its last answer then said: read them first.",
        )
    return [], "Nothing tells what would have been right: say it in `checks`, or give --expect TEXT."


def said_later(messages: Sequence[Json]) -> list[str]:
    """What the person said once there was an answer: where it was wrong, that is how it was corrected."""
    later = dropwhile(lambda message: message["role"] != "assistant", messages)
    return list(islice(_texts(later), _NOTES))


def _texts(messages: Iterator[Json]) -> Iterator[str]:
    from agentos.trajectories.conversations import text_of

    for message in messages:
        if message["role"] == "user" and (text := text_of(message.get("content")).strip()):
            yield text


def _line(text: str) -> str:
    """As a comment: one line, and nothing that could end it."""
    shown = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return shown[:_LONG]
