"""``agentos run good|bad|correct``: what a person says of a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentos.cli.group import AsJson, Verbs
from agentos.cli.output import print_json, print_text, short_text
from agentos.daemon.views.json_views import run_signals
from agentos.domain import IMPORT, Feedback, Json, Rating, Run, Step
from agentos.errors import UserError
from agentos.home import Home
from agentos.ledger.reading import Reader

if TYPE_CHECKING:
    from agentos.daemon.people.feedback import FeedbackDetails
    from agentos.evolver.find.signals import Deviation


Id = Annotated[str, typer.Argument(metavar="ID", help="The run's id, or enough of its start or end.")]
Because = Annotated[
    str, typer.Option(metavar="TEXT", help="Why, in your words; whatever proposes an edit reads it.")
]
Expect = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH=VALUE",
        help="A value that the answer has to have there; =VALUE: the whole answer. Repeatable.",
    ),
]
CheckFile = Annotated[
    Path | None,
    typer.Option("--check", metavar="FILE", help="A file of checks, as below 'checks' of a task."),
]
_ANSWER_MAX = 4 << 20


def add_to(app: Verbs) -> None:
    """The verbs, among those of runs."""
    app.command()(good)
    app.command(example="agentos run bad run-4k2 --expect total=42")(bad)
    app.command()(correct)
    app.command(hidden=True)(flag)


def good(
    id: Id, because: Because = "", expect: Expect = None, check: CheckFile = None, as_json: AsJson = False
) -> None:
    """Say that a run's answer is right: later edits may not break it."""
    from agentos.daemon.people.feedback import FeedbackDetails

    _speak(id, Rating.GOOD, FeedbackDetails(because, tuple(expect or ()), check), as_json=as_json)


def bad(
    id: Id, because: Because = "", expect: Expect = None, check: CheckFile = None, as_json: AsJson = False
) -> None:
    """Say that a run's answer is wrong, also of one that passed; with --expect it is evidence for an edit."""
    from agentos.daemon.people.feedback import FeedbackDetails

    _speak(id, Rating.BAD, FeedbackDetails(because, tuple(expect or ()), check), as_json=as_json)


def correct(
    id: Id,
    because: Because = "",
    answer: Annotated[
        str, typer.Option(metavar="FILE|-", help="The answer as it should have been; else $EDITOR opens it.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Correct a run's answer: what you change is evidence for an edit, what you leave of an object has to stay."""
    from agentos.daemon.people.feedback import FeedbackDetails

    with _corrected(id, answer) as right:
        _speak(id, Rating.BAD, FeedbackDetails(because, corrected=(right,)), as_json=as_json)


def flag(id: Id, reason: Annotated[str, typer.Option(metavar="TEXT")] = "") -> None:
    """The old name of `agentos run bad`."""
    from agentos.daemon.people.feedback import FeedbackDetails

    _speak(id, Rating.BAD, FeedbackDetails(reason), as_json=False)


def _speak(id: str, rating: Rating, said: FeedbackDetails, *, as_json: bool) -> None:
    from agentos.daemon.people.feedback import speak
    from agentos.ledger.reading import Reader

    home = Home.find()
    found = speak(home, id, rating, said)
    if as_json:
        print_json(found)
        return
    tell_words(found)
    _tell_opposed(Reader(home.ledger), found[0])
    if Reader(home.ledger).run(found[0].run_id).sandbox == IMPORT:
        print_text(
            "The run was made elsewhere, so nothing here is measured by it. "
            f"`agentos task from-run {found[0].run_id} -o FILE` makes a task of it, with these checks."
        )
    elif found[0].checks:
        print_text("The daemon holds the run's answer against it; `agentos run list` shows what came of it.")
        if rating is Rating.BAD and said.expect and not any(text.startswith("=") for text in said.expect):
            rest = f"`agentos run correct {found[0].run_id}` says that the rest of the answer was right, too."
            print_text(rest, "dim")
    else:
        print_text(
            "It is kept, and nothing can be measured by it: say what the answer has to be with "
            f"`agentos run correct {found[0].run_id}`, or with --expect PATH=VALUE.",
            "yellow",
        )


def _tell_opposed(reader: Reader, word: Feedback) -> None:
    """That somebody said the opposite before, and what becomes of that."""
    from agentos.evolver.find.feedback import taken_back

    said = reader.find(Feedback, run_id=word.run_id)
    opposed = [one for one in said if one.id in taken_back(said)]
    if opposed:
        one = opposed[-1]
        print_text(
            f"{one.principal} said {one.rating.value} of it at {one.at.astimezone():%Y-%m-%d %H:%M}: the newer word "
            "stands. What the older one has opened already goes on; `agentos evolution list` shows it.",
            "yellow",
        )


def tell_words(words: Sequence[Feedback]) -> None:
    """One line for each, and one for each check that was made of it; ``words`` are all of a run."""
    from agentos.evolver.find.feedback import taken_back

    opposed = taken_back(words)
    for word in words:
        reason = f": {word.because}" if word.because else ""
        if word.id in opposed:
            reason += f"  (taken back by {opposed[word.id].principal})"
        print_text(
            f"{word.rating.value:<11}{word.principal}, {word.at.astimezone():%Y-%m-%d %H:%M}{reason}",
            "green" if word.rating is Rating.GOOD else "yellow",
        )
        for check in word.checks:
            spec = {key: value for key, value in check.spec.items() if key != "made_by"}
            print_text(f"expects    {check.kind} {short_text(spec, 2000)}")


@contextmanager
def _corrected(id: str, given: str) -> Iterator[Json]:
    """The answer as it should have been: JSON, or text where the run's own is text. Raises UserError."""
    from agentos.cli.resources.registry_edit import edited
    from agentos.ledger.blobs import BlobStore
    from agentos.ledger.reading import Reader
    from agentos.sources import read_bounded

    home = Home.find()
    reader = Reader(home.ledger)
    run = reader.run(reader.resolve("run", id))
    answer = BlobStore(home.blobs).expand(run.answer)
    is_text = isinstance(answer, str)
    if given == "-":
        yield _read(sys.stdin.buffer.read(_ANSWER_MAX + 1), is_text=is_text)
    elif given:
        yield _read(read_bounded(Path(given), _ANSWER_MAX, "an answer"), is_text=is_text)
    else:
        shown = answer if is_text else json.dumps(answer, indent=2, ensure_ascii=False)
        name = "answer.txt" if is_text else "answer.json"
        with edited(f"{shown}\n".encode(errors="replace"), name, "--answer") as typed:
            yield _read(typed, is_text=is_text)


def _read(data: bytes, *, is_text: bool) -> Json:
    if len(data) > _ANSWER_MAX:
        raise UserError(f"The answer has more than {_ANSWER_MAX:,} bytes.")
    try:
        text = data.decode("utf-8")
        return text.rstrip("\n") if is_text else json.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "UTF-8 text" if is_text else "JSON, as the run's answer is"
        raise UserError(f"Expected {kind}: {error}") from None


# -------------------------------------------------------------------------------------------------
# What ``agentos run show`` says of a run's signals, and of how it differs from the other runs of its
# task.


_SHOWN = 6  # signals


def tell_signals(reader: Reader, run: Run, steps: Sequence[Step]) -> None:
    """At most two lines: the signals, and the deviation."""
    signs, found = run_signals(reader, run, steps)
    if signs:
        more = f" and {len(signs) - _SHOWN} more" if len(signs) > _SHOWN else ""
        told = ", ".join(f"{sign.signal.value} at step {sign.step}" for sign in signs[:_SHOWN])
        print_text(f"signals    {told}{more}")
    if found is not None:
        how = (
            f"{found.share:.0%} of what it changed is not what they changed"
            if found.share
            else "the same changes"
        )
        print_text(f"compared   {how}  ({_runs(found)} of its task)")


def _runs(found: Deviation) -> str:
    return "the other run" if found.others == 1 else f"{found.others} other runs"
