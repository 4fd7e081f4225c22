"""What people say of runs: kept at once, and held against what the run left when the daemon has a box for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from agentos.daemon.offline import offline_context
from agentos.domain import IMPORT, Check, CheckResult, Feedback, Json, Rating, Run, Task, new_id
from agentos.errors import DamagedBlob, ErrorKind, NotFound, UserError, to_type
from agentos.evolver.find import feedback as words
from agentos.evolver.find.mining import flag, flag_regraded, inspect
from agentos.evolver.promote.consent import person
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.sources import read_bounded
from agentos.taskfile import MAX_BYTES, checks_of

if TYPE_CHECKING:
    from agentos.evolver.dependencies import Dependencies

CURSOR = "feedback"
BECAUSE_MAX = 2_000
Grader = Callable[[Task, Json, Mapping[str, bytes]], Sequence[CheckResult]]

log = structlog.get_logger("agentos.feedback")


@dataclass(frozen=True, slots=True)
class FeedbackDetails:
    """What a person says beside the rating."""

    because: str = ""
    expect: tuple[str, ...] = ()  # PATH=VALUE
    check: Path | None = None
    corrected: tuple[Json, ...] = ()  # the answer as it should have been, if it is given


def speak(home: Home, id: str, rating: Rating, said: FeedbackDetails, principal: str = "") -> list[Feedback]:
    """Keep a person's word on a run, audited; what was made of it, one or two records.

    ``principal`` is whose word it is, where that is not whoever runs this process. A correction says two things:
    what was wrong, and which parts were right. Raises NotFound and UserError.
    """
    who = principal or person()
    if len(said.because) > BECAUSE_MAX:
        raise UserError(f"The reason has {len(said.because):,} characters, at most {BECAUSE_MAX:,} are kept.")
    with offline_context(home) as parts:
        ledger = parts.records
        assert isinstance(ledger, Ledger)
        run = ledger.run(ledger.resolve("run", id))
        if run.outcome is None:
            raise UserError(
                f"{run.id} is still under way; ", to_type(f"agentos run tail {run.id}"), " follows it."
            )
        task, answer = ledger.task(run.task_id), ledger.blobs.expand(run.answer)
        now = datetime.now(UTC)
        because = said.because.strip()

        def word(rating: Rating, expected: Sequence[Check]) -> Feedback:
            made = words.named(expected, name := new_id("feedback"))
            return Feedback(name, run.id, run.task_key, rating, because, made, who, now)

        found = [word(rating, _expected(task, run, answer, rating, said))]
        if said.corrected and (kept := words.kept_parts(answer, said.corrected[0])):
            found.append(word(Rating.GOOD, kept))
        for one in found:
            detail = {"run": run.id, "rating": one.rating, "principal": one.principal}
            ledger.note(f"feedback.{one.rating}", one.id, detail, (one,))
        if rating is Rating.BAD and not found[0].checks and inspect(parts, run) is not None:
            flag(parts, run)
        return found


def _expected(task: Task, run: Run, answer: Json, rating: Rating, said: FeedbackDetails) -> tuple[Check, ...]:
    """The checks of a word, held against what is known already. Raises UserError where they can show nothing."""
    expected = [words.expectation(text) for text in said.expect]
    corrected = said.corrected[0] if said.corrected else words.with_values(answer, expected)
    if said.corrected:
        expected += words.of_correction(answer, corrected)
    if said.check is not None:
        expected += checks_of(read_bounded(said.check, MAX_BYTES, "a file of checks"), str(said.check))
    try:
        json.dumps([check.spec for check in expected], allow_nan=False, ensure_ascii=False).encode("utf-8")
    except ValueError as error:
        raise UserError(
            f"What the answer should be holds what JSON cannot: {error}", kind=ErrorKind.USAGE
        ) from None
    if run.sandbox != IMPORT and not words.is_gradable(run):
        return tuple(expected) if rating is Rating.BAD else ()
    if said.expect and (slip := words.leads_nowhere(answer, expected[: len(said.expect)])):
        raise UserError(
            f"{slip}. If it should have that: --check FILE, with `equals: {{path: …, value: …}}`."
        )
    if rating is Rating.BAD and words.has_them_already(answer, expected):
        raise UserError(
            f"The answer of {run.id} is that already; say what it should have been instead.",
            kind=ErrorKind.DECIDED,
        )
    if rating is Rating.GOOD and (why := words.unmet(answer, expected)):
        raise UserError(
            f"The answer of {run.id} is not so ({why}): ",
            to_type("agentos run bad"),
            " says what it should be.",
        )
    if (said.expect or said.corrected) and (why := words.contradicted(task, answer, corrected)):
        raise UserError(
            f"The task's own check says otherwise ({why}): change the task's checks, and run it again.",
            kind=ErrorKind.MISMATCHED,
        )
    if rating is Rating.GOOD and not expected and run.sandbox != IMPORT:
        return words.pinned(task, run, answer)
    return tuple(expected)


def settle(parts: Dependencies, ledger: Ledger, grader: Grader) -> int:
    """Hold every word that was kept since the last call against its run; how many were looked at.

    One that was taken back before that is not held, nor one on a run whose files are gone or damaged. Raises Unavailable
    when the machinery failed: then the word is looked at again. Safe to repeat.
    """
    done = ledger.read(CURSOR)
    fresh = ledger.find(Feedback)[done:]
    for number, word in enumerate(fresh, done + 1):
        opposed = words.taken_back(ledger.find(Feedback, run_id=word.run_id))
        if word.checks and word.id not in opposed:
            _hold(parts, ledger, grader, word)
        ledger.advance(CURSOR, number, [])
    return len(fresh)


def _hold(parts: Dependencies, ledger: Ledger, grader: Grader, word: Feedback) -> None:
    run = ledger.run(word.run_id)
    if run.sandbox == IMPORT:
        return  # what made it is not here, so nothing here can be measured by it: `task from-run` takes its checks
    task = words.regraded_task(word, ledger.task(run.task_id))
    found: Sequence[CheckResult] = ()
    if words.is_gradable(run):
        try:
            files = {file.path: ledger.blobs.get(file.sha256) for file in run.outputs}
            answer = ledger.blobs.expand(run.answer)
        # As retention lets them go, or damaged: the words after it are held.
        except (NotFound, DamagedBlob) as error:
            log.warning("feedback cannot be held", feedback=word.id, run=run.id, why=str(error))
            return
        found = grader(task, answer, files)
    regraded = words.regraded(word, task, run, found)
    if regraded is None:
        log.info("feedback shows nothing", feedback=word.id, run=run.id, rating=word.rating.value)
        return
    steps = [replace(step, run_id=regraded.id) for step in ledger.steps(run.id)]
    ledger.add_past(task, regraded, steps, event="run.regraded")
    if word.rating is Rating.BAD:
        flag_regraded(parts, ledger.run(regraded.id), word.at)
