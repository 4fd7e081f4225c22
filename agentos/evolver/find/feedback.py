"""A person's word on a run: the checks that the kernel makes of it, and the run as it is graded by them.

A word says what one person thinks, and decides nothing by itself: what was expected becomes a check, and what
a check says is measured like everything else. A word without a check is kept, and measured by nothing.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agentos import checks
from agentos.domain import (
    WRONG_ANSWER,
    Check,
    CheckResult,
    Feedback,
    Json,
    KernelFault,
    Outcome,
    Rating,
    Result,
    Run,
    Task,
    kernel_fault,
    kind_of,
)
from agentos.errors import UserError
from agentos.plaintext import typed_value

_TEXT = 200  # characters: a longer text, or one of several lines, is seldom written twice alike
_LINES = 10  # checks that are made of a corrected text
_NONE = object()
_QUICK = ("equals", "contains")  # judged here: no pattern, no foreign code


def expectation(said: str) -> Check:
    """The check that ``PATH=VALUE`` stands for; the value is JSON, else text, and no path is the whole answer."""
    path, mark, text = said.partition("=")
    if not mark:
        raise UserError(
            f"Expected PATH=VALUE, as in total=12.5 (=VALUE is the whole answer); found '{said}'."
        )
    return Check("equals", {"value": typed_value(text)} | ({"path": path.strip()} if path.strip() else {}))


def of_correction(answer: Json, corrected: Json) -> tuple[Check, ...]:
    """What an answer has to be that was corrected: the same value; of a longer text the lines that were changed."""
    if not (_is_free_text(answer) and isinstance(corrected, str)):
        return (Check("equals", {"value": corrected}),)
    # each once: ten rules between paragraphs would leave no room for what they divide
    old, new = (
        [*dict.fromkeys(line.strip() for line in text.splitlines() if line.strip())]
        for text in (answer, corrected)
    )
    added = [Check("contains", {"value": line}) for line in new if line not in old]
    gone = [
        Check("regex", {"pattern": rf"\A(?![\s\S]*{re.escape(line)})"}) for line in old if line not in new
    ]
    return (*added, *gone)[:_LINES]


def kept_parts(answer: Json, corrected: Json) -> tuple[Check, ...]:
    """The parts of an object that a correction left as they were: they were right."""
    if not isinstance(answer, dict) or not isinstance(corrected, dict):
        return ()
    same = [key for key in answer if key in corrected and not checks.difference(answer[key], corrected[key])]
    return tuple(Check("equals", {"path": key, "value": answer[key]}) for key in same if "." not in key)


def pinned(task: Task, run: Run, answer: Json) -> tuple[Check, ...]:
    """The answer itself as a check, where equal work is expected to give it again; else none."""
    asked_models = run.outcome is not None and run.outcome.cost.calls > 0
    if (task.call is None or asked_models) and _is_free_text(answer):
        return ()
    return (Check("equals", {"value": answer}),)


def _is_free_text(answer: Json) -> bool:
    return isinstance(answer, str) and (len(answer) > _TEXT or "\n" in answer.strip())


def with_values(answer: Json, expected: Sequence[Check]) -> Json:
    """The answer with the expected values in it, as far as their paths lead somewhere."""
    whole = json.loads(json.dumps(answer))
    for check in expected:
        *way, last = str(check.spec.get("path") or "").split(".")
        if not last:
            return check.spec["value"]
        place = whole
        for key in way:
            place = _inner(place, key)
        if isinstance(place, dict):
            place[last] = check.spec["value"]
        elif (number := checks.place_in(place, last)) is not None:
            place[number] = check.spec["value"]
    return whole


def _inner(place: Json, key: str) -> Json:
    """What a part of a path leads to, ``_NONE`` for nowhere."""
    if isinstance(place, dict):
        return place.get(key, _NONE)
    number = checks.place_in(place, key)
    return _NONE if number is None else place[number]


def leads_nowhere(answer: Json, expected: Sequence[Check]) -> str:
    """What a path asks of the answer that it does not have, as a sentence; a slip opens evidence that nobody can repair."""
    for check in expected:
        place = answer
        for key in str(check.spec.get("path") or "").split(".") if check.spec.get("path") else ():
            inner = _inner(place, key)
            if inner is _NONE:
                there = f"; it has {', '.join(list(place)[:8])}" if isinstance(place, dict) and place else ""
                return f"The answer has no '{check.spec['path']}'{there}"
            place = inner
    return ""


def contradicted(task: Task, answer: Json, corrected: Json) -> str:
    """The task's own check that the corrected answer fails and the given one passes, as a sentence; else ""."""
    for check in task.checks:
        if check.kind in _QUICK:
            spec = checks.parse(check.kind, check.spec)
            if not checks.judge(spec, answer, Path()) and (why := checks.judge(spec, corrected, Path())):
                return f"{check.kind}: {why}"
    return ""


def unmet(answer: Json, expected: Sequence[Check]) -> str:
    """The first of these that the answer fails, as a sentence, as far as that can be told here; else ""."""
    for check in expected:
        if check.kind in _QUICK and (
            why := checks.judge(checks.parse(check.kind, check.spec), answer, Path())
        ):
            return f"{check.kind}: {why}"
    return ""


def has_them_already(answer: Json, expected: Sequence[Check]) -> bool:
    """Whether the answer passes all of these, as far as that can be told here."""
    return bool(expected) and all(
        check.kind in _QUICK and not checks.judge(checks.parse(check.kind, check.spec), answer, Path())
        for check in expected
    )


def named(expected: Sequence[Check], made_by: str) -> tuple[Check, ...]:
    """The checks, each saying what it was made of."""
    return tuple(Check(check.kind, {**check.spec, "made_by": made_by}) for check in expected)


def taken_back(said: Sequence[Feedback]) -> dict[str, Feedback]:
    """Of words by their id that a later one on the same run says the opposite of: that later one, whoever said it.

    The newest word on a run stands. A correction says both at once, and takes nothing of itself back: it is a bad word,
    whatever it says of the parts that were right. Of two bad words the older one is taken back where both say what a
    place of the answer has to be, and say different things: no edit could do both.
    """
    found: dict[str, Feedback] = {}
    by_run: dict[str, list[Feedback]] = {}
    for word in sorted(said, key=lambda word: (word.at, word.rating is Rating.BAD)):
        by_run.setdefault(word.run_id, []).append(word)
    for words in by_run.values():
        newest = words[-1]
        for word in words:
            later = [other for other in words if other.at > word.at]
            if newest.rating is not word.rating and newest in later:
                found[word.id] = newest
            elif other := next((other for other in later if _disagree(word, other)), None):
                found[word.id] = other
    return found


def _disagree(one: Feedback, other: Feedback) -> bool:
    """Whether two bad words expect different values at one place."""
    pairs = (
        itertools.product(_wanted(one), _wanted(other)) if one.rating is other.rating is Rating.BAD else ()
    )
    return any(_differ(*sorted(pair, key=lambda wanted: len(wanted[0]))) for pair in pairs)


def _wanted(word: Feedback) -> list[tuple[list[str], Json]]:
    """(way into the answer, value) of each value that it expects."""
    ways = [(str(check.spec.get("path") or ""), check) for check in word.checks if check.kind == "equals"]
    return [(way.split(".") if way else [], check.spec.get("value")) for way, check in ways]


def _differ(outer: tuple[list[str], Json], inner: tuple[list[str], Json]) -> bool:
    way, value = outer
    if inner[0][: len(way)] != way:
        return False
    for key in inner[0][len(way) :]:
        value = _inner(value, key)
    return value is _NONE or bool(checks.difference(inner[1], value))


def regraded_task(feedback: Feedback, task: Task) -> Task:
    """The work of the run, with what the person expects of it beside its own checks.

    No run of its schedule: that one would count as the newest that read the inputs.
    """
    return replace(
        task,
        id=feedback.task_id,
        checks=(*task.checks, *feedback.checks),
        schedule=None,
        schedule_id="",
        created_at=feedback.at,
        parent="",
    )


def is_gradable(run: Run) -> bool:
    """Whether the run came to an answer, so that checks have something to be held against."""
    outcome = run.outcome
    return outcome is not None and (outcome.result is Result.PASSED or kind_of(outcome.fault) in WRONG_ANSWER)


def regraded(feedback: Feedback, task: Task, run: Run, found: Sequence[CheckResult]) -> Run | None:
    """The run as the person's checks grade it; ``found`` is one result for each check of ``task``.

    None where they do not show what the person said: a good run that fails one, a bad run that passes all.
    """
    outcome = run.outcome
    assert outcome is not None
    if is_gradable(run):
        outcome = _graded(feedback, outcome, found)
    if (outcome.result is Result.PASSED) is not (feedback.rating is Rating.GOOD):
        return None
    return replace(
        run,
        id=feedback.regraded_id,
        task_id=task.id,
        task_key=task.key,
        attempt=1,
        outcome=outcome,
        parent="",
        resumes="",
        regrades=run.id,
    )


def _graded(feedback: Feedback, outcome: Outcome, found: Sequence[CheckResult]) -> Outcome:
    wrong = [result for result in found if not result.passed]
    score = 1 - len(wrong) / max(len(found), 1)
    if not wrong:
        return replace(outcome, result=Result.PASSED, score=1.0, reason="", fault=None, checks=tuple(found))
    said = f" (a person: {feedback.because})" if feedback.because else ""
    details = "; ".join(f"{result.kind}: {result.detail}" for result in wrong) + said
    own = len(found) - len(feedback.checks)
    spoken = any(not result.passed for result in found[own:])
    fault = kernel_fault(KernelFault.FEEDBACK if spoken else KernelFault.CHECK, details)
    reason = f"{len(wrong)} of {len(found)} checks failed: {details}"
    return Outcome(Result.FAILED, score, reason, fault, tuple(found), outcome.cost)
