"""Puts a run's question to a person: answered from the record, or the run ends and its task waits.

Nothing is held while a task waits, neither a box nor a slot: when the answer is there, another run
goes on from the record of this one. What a sandbox sends can only ask: an answer comes through the
ledger, which no sandbox can reach.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agentos.daemon.requests.run_requests import Denied, RequestHandler, RunContext, RunEnds
from agentos.domain import Json, KernelFault, Question, Result, digest, kernel_fault
from agentos.ledger.store import Ledger

TEXT_MAX = 4_000  # characters of a question
_CHOICES_MAX = 20
_CHOICE_MAX = 200  # characters of one


class People:
    """Makes the answerer of each run's questions (``RunServices.answerers["person"]``)."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def answerer(self, asking: RunContext) -> RequestHandler:
        """For one run."""
        return _Questions(self._ledger, asking)


class _Questions(RequestHandler):
    """One run's questions. Equal questions of one task are one question, with one answer."""

    def __init__(self, ledger: Ledger, asking: RunContext) -> None:
        self._ledger = ledger
        self._asking = asking

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
        """{"answer": text}. Raises RunEnds where there is none yet, or none on record for a replay."""
        text, choices = _question(body, self._asking.redact)
        plan = self._asking.plan
        action = {"question": text, "choices": list(choices)}
        given = plan.recording.answers.get(text) if plan.recording else None
        if given is None and not plan.replays:
            given = self._ledger.answers(self._asking.task.id).get(text)
        if given is not None:
            self._asking.step("person", action, {"answer": given}, 0.0)
            return {"answer": given}
        if plan.replays:
            why = f"a replay came to a question that nobody answered on record: {text[:200]}"
            raise RunEnds(Result.NOT_REPLAYABLE, kernel_fault(KernelFault.NOT_RECORDED, why))
        self._ledger.keep(self._asked(text, choices))
        self._asking.step("person", action, {"waiting": True}, 0.0)
        raise RunEnds(Result.WAITING, kernel_fault(KernelFault.WAITING, text))

    def _asked(self, text: str, choices: tuple[str, ...]) -> Question:
        task = self._asking.task
        return Question(
            # asked again after a crash it is the same one
            id=f"question-{digest([task.id, text])[:13]}",
            task_id=task.id,
            root_id=self._ledger.root_of(task).id,
            run_id=self._asking.run_id,
            text=text,
            choices=choices,
            asked_at=datetime.now(UTC),
        )


def readable(text: str) -> str:
    """Without what a terminal would obey or hide: control, format and surrogate characters."""
    kept = (
        letter
        for letter in text
        if letter in "\n\t" or unicodedata.category(letter) not in ("Cc", "Cf", "Cs")
    )
    return "".join(kept).strip()


def _question(body: Mapping[str, Any], redact: Callable[[Json], Json]) -> tuple[str, tuple[str, ...]]:
    """What is asked, held against what may be, as it may be stored. Raises Denied."""
    text, choices = body.get("question"), body.get("choices") or []
    if not isinstance(text, str) or not readable(text):
        raise Denied("request", "a question is a text that is not empty")
    if len(text) > TEXT_MAX:
        raise Denied("request", f"a question has at most {TEXT_MAX:,} characters, this one {len(text):,}")
    return redact(readable(text)), _choices(redact(choices))


def _choices(choices: Any) -> tuple[str, ...]:
    if not isinstance(choices, Sequence) or isinstance(choices, str) or len(choices) > _CHOICES_MAX:
        raise Denied("request", f"choices are a list of at most {_CHOICES_MAX} texts")
    shown = [readable(choice) if isinstance(choice, str) else "" for choice in choices]
    if not all(0 < len(choice) <= _CHOICE_MAX for choice in shown) or len(set(shown)) < len(shown):
        raise Denied("request", f"each choice is another text of 1 to {_CHOICE_MAX} characters")
    return tuple(shown)
